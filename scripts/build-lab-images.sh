#!/usr/bin/env bash
# Builds the lab's images from scratch: Caddy, and the lab's own program in each role and each way to misbehave.
# Nothing is downloaded but what `scripts/fetch-lab-binaries.sh` fetches; what is built already is not built again.
#
#   build-lab-images.sh            builds them
#   build-lab-images.sh --names    says which they are
set -euo pipefail
cd "$(dirname "$0")/.."

# This builder keeps its cache in the images themselves: with them gone, all of it is.
export DOCKER_BUILDKIT=0

# Name, file, arguments of the build.
images='
replicator-lab/caddy:1          caddy
replicator-lab/net:1            workload ROLE=net
replicator-lab/net:2            workload ROLE=net RELEASE=2
replicator-lab/gateway:1        workload ROLE=gateway
replicator-lab/gateway:2        workload ROLE=gateway RELEASE=2
replicator-lab/gateway:slow     workload ROLE=gateway MODE=slow
replicator-demo/net:1           workload ROLE=net
replicator-demo/web:1           workload
replicator-demo/web:2           workload RELEASE=2
replicator-demo/web:exits       workload MODE=exit
replicator-demo/web:unhealthy   workload MODE=unhealthy
replicator-demo/web:refused     refused
'

if [ "${1:-}" = --names ]; then
  awk 'NF { print $1 }' <<<"$images"
  exit 0
fi

scripts/fetch-lab-binaries.sh
context=target/lab/images
mkdir -p "$context/caddy" "$context/workload"
cmp -s target/lab/bin/caddy "$context/caddy/caddy" || cp target/lab/bin/caddy "$context/caddy/caddy"

# The program alone, static, in a second: through cargo, other features would build the whole workspace again.
program=$context/workload/lab-workload
if [ ! -x "$program" ] || [ -n "$(find lab/workload -newer "$program")" ]; then
  rustc --edition 2024 -O -C target-feature=+crt-static -C panic=abort -C strip=symbols \
    lab/workload/main.rs -o "$program.new"
  mv "$program.new" "$program"
fi

while read -r name file arguments; do
  [ -n "$name" ] || continue
  from=workload
  [ "$file" = caddy ] && from=caddy
  options=()
  for argument in $arguments; do options+=(--build-arg "$argument"); done
  said=$(docker build --quiet --force-rm --tag "$name" --file "lab/images/$file.Dockerfile" "${options[@]}" "$context/$from" 2>&1) || {
    echo "cannot build $name:" >&2
    echo "$said" >&2
    exit 1
  }
done <<<"$images"
