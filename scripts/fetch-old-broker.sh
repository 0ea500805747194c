#!/usr/bin/env bash
# Fetches the distribution's own nats-server, which is older than we accept, into target/lab/bin: the lab shows that it
# is refused. Without it that one test says that it was skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=target/lab/bin
[ -x "$bin/nats-server-old" ] && exit 0

skip() {
  echo "no old broker for the lab ($1): put a nats-server below 2.12 into $bin/nats-server-old yourself" >&2
  exit 0
}
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "no apt-get here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -qq download nats-server 2>/dev/null || {
  apt-get -qq update 2>/dev/null && apt-get -qq download nats-server 2>/dev/null
} || skip "apt-get does not give it"
dpkg-deb -x nats-server_*.deb unpacked
cd "$OLDPWD"
mkdir -p "$bin"
install -m 0755 "$work/unpacked/usr/sbin/nats-server" "$bin/.nats-server-old.new"
mv "$bin/.nats-server-old.new" "$bin/nats-server-old"
