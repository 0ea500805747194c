# The reverse proxy: Caddy's static binary and nothing else.
FROM scratch
COPY caddy /usr/bin/caddy
ENV PATH=/usr/bin
LABEL replicator.lab=image
CMD ["caddy", "version"]
