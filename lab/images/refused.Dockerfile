# An image whose program is not there: the runtime makes a container of it, and refuses to start that.
FROM scratch
LABEL replicator.lab=image
COPY lab-workload /lab-workload
USER 1000:1000
ENTRYPOINT ["/not-there"]
