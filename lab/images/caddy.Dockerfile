# The reverse proxy: Caddy's static binary and nothing else.
FROM scratch
LABEL replicator.lab=image
COPY caddy /usr/bin/caddy
ENV PATH=/usr/bin
CMD ["caddy", "version"]
