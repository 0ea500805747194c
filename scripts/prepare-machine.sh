#!/usr/bin/env bash
# Makes a Debian or Ubuntu machine able to run the lab: a container runtime, and pip to fetch pinned binaries.
# Installs nothing that is there, and starts a Docker daemon only where none answers.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
command -v dockerd >/dev/null || missing+=(docker.io)
command -v docker >/dev/null || missing+=(docker.io)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

if ! docker version >/dev/null 2>&1; then
  mkdir -p target/lab
  setsid dockerd >target/lab/dockerd.log 2>&1 </dev/null &
  for _ in $(seq 1 60); do
    docker version >/dev/null 2>&1 && exit 0
    sleep 1
  done
  echo "dockerd does not answer; the end of its log:" >&2
  tail -20 target/lab/dockerd.log >&2
  exit 1
fi
