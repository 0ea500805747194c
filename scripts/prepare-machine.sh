#!/usr/bin/env bash
# Makes a Debian or Ubuntu machine able to run the lab: a container runtime, and pip to fetch pinned binaries.
# Installs nothing that is there, and starts a Docker daemon only where none answers.
#
#   prepare-machine.sh              does it
#   prepare-machine.sh --missing    says which packages it would install, and does nothing
#
# DOCKERD_PROCESS names a file that is written only where it starts a daemon of its own: number and start time.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
{ command -v dockerd && command -v docker; } >/dev/null || missing+=(docker.io)
command -v ip >/dev/null || missing+=(iproute2)
command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v curl >/dev/null || missing+=(curl ca-certificates)
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
if [ "${1:-}" = --missing ]; then
  echo "${missing[*]}"
  exit 0
fi
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing ${missing[*]}" >&2
  export DEBIAN_FRONTEND=noninteractive
  # An installation that was cut off is ended first: nothing is installed before that.
  [ -z "$(dpkg --audit 2>/dev/null)" ] || dpkg --configure -a >/dev/null
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
fi

answers() { docker version >/dev/null 2>&1; }
answers && exit 0
log=target/lab/dockerd.log
mkdir -p target/lab
if [ -d /run/systemd/system ]; then
  systemctl start docker
else
  # It names itself before it begins, so that it is found whatever happens to us. Of the fields of `stat` after the
  # last bracket the twentieth is when it started.
  # shellcheck disable=SC2016
  setsid bash -c '
    if [ -n "$0" ]; then
      stat=$(cat "/proc/$$/stat")
      set -- ${stat##*) }
      echo "$$ ${20}" >"$0.new" && mv "$0.new" "$0"
    fi
    exec dockerd' "${DOCKERD_PROCESS:-}" >"$log" 2>&1 </dev/null &
fi
for _ in $(seq 1 60); do
  answers && exit 0
  sleep 1
done
echo "dockerd does not answer; the end of its log:" >&2
tail -20 "$log" >&2
exit 1
