# The lab's own program. Every role and every way to misbehave is one argument of the build.
FROM scratch
# First, so that what a build that was cut off leaves bears it.
LABEL replicator.lab=image
COPY lab-workload /lab-workload
ARG ROLE=workload
ARG MODE=serve
ARG RELEASE=1
ENV LAB_ROLE=$ROLE LAB_MODE=$MODE LAB_RELEASE=$RELEASE
USER 1000:1000
# The program handles no signal, and the first process of a container is not ended by one it does not handle.
STOPSIGNAL SIGKILL
HEALTHCHECK --interval=1s --timeout=3s --retries=3 CMD ["/lab-workload", "health"]
ENTRYPOINT ["/lab-workload"]
