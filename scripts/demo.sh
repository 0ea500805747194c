#!/usr/bin/env bash
# The README's first command: raises broker, collector and agent on this machine, makes the example host what its
# spec says, and shows that it is. Run again, it shows that nothing is left to do. `make demo-down` takes it away.
#
#   YES=1          installs what is missing without asking
#   DEMO_DIR=...   where everything of it lies (default: .demo)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/demo-lib.sh
began=$SECONDS

demand_root demo
command -v cargo >/dev/null || fail "there is no \`cargo\`" "install the Rust toolchain: https://rustup.rs"
# Cut off at any time, it is gone on with: every step looks first whether it was done.
cut_off() {
  trap - INT TERM
  printf '\ncut off; `%s demo` goes on, `%s demo-down` takes away what there is\n' "$make" "$make" >&2
  exit 130
}
trap cut_off INT TERM
first=
[ -e "$DEMO_DIR/before/complete" ] || first=1

# What this machine needs: asked once, done once.
missing=$(scripts/prepare-machine.sh --missing)
if [ -n "$missing" ]; then
  if [ "${YES:-}" != 1 ]; then
    [ -t 0 ] || fail "these packages are missing: $missing" "run \`YES=1 $make demo\` to have them installed"
    read -r -p "The demo needs these packages, and installs them with apt-get: $missing. Go on? [y/N] " answer
    case $answer in y | Y | yes) ;; *) fail "nothing was installed" "run it again, or install them yourself" ;; esac
  fi
fi
if [ -n "$first" ]; then
  for port in "$BROKER_PORT" "$SERVE_PORT" "$PROXY_PORT"; do
    listens "$port" || continue
    hint="BROKER_PORT and SERVE_PORT name others for broker and collector"
    [ "$port" != "$PROXY_PORT" ] || hint="the proxy of a host without ingress has this one and no other: end what listens there"
    fail "port $port is taken" "see what listens there: \`ss -ltnp 'sport = :$port'\`; $hint"
  done
fi
take_folder
# What lies there without a list of what was before is the rest of one that was being removed.
[ -z "$first" ] || rm -rf "$DEMO_DIR/before" "$DEMO_DIR/home" "$DEMO_DIR/agent"
mkdir -p "$DEMO_DIR/run"
# A command that is missing names all the packages it takes; some of them may be there.
for package in $missing; do has_package "$package" || echo "$package"; done >>"$DEMO_DIR/installed"
DOCKERD_PROCESS=$DEMO_DIR/run/dockerd scripts/prepare-machine.sh

if [ -n "$first" ]; then
  # Taken whole or not at all: `demo-down` compares with it.
  take_lists "$DEMO_DIR/before"
  touch "$DEMO_DIR/before/complete"
fi

say "building"
cargo build --workspace
scripts/build-lab-images.sh

say "raising broker and collector"
if [ ! -e "$REPLICATOR_HOME/fleets/demo/fleet.toml" ]; then
  "$replicator" broker init --fleet demo --listen "127.0.0.1:$BROKER_PORT" --name localhost >/dev/null
fi
end_outdated
raise_broker
raise_serve

stored() { "$replicator" secrets list "${files[@]:0:2}" -o json | grep -A1 '"name": "webToken"' | grep -q 'generation": [0-9]'; }
stored || od -An -tx1 -N16 /dev/urandom | tr -d ' \n' | "$replicator" secrets set webToken "${files[@]:0:2}"

say "making this machine what examples/hosts/this-machine.yml says"
"$replicator" host up "$HOST" "${files[@]}" "${agent[@]}" | tee "$DEMO_DIR/report"

url=$(grep -o 'http://[^ ]*' "$DEMO_DIR/report" | tail -n 1)
name=${url#http://}
name=${name%%[:/]*}
say "fetching $url (as $name from 127.0.0.1:$PROXY_PORT)"
page=$(curl --fail --silent --show-error --max-time 30 --header "Host: $name" "http://127.0.0.1:$PROXY_PORT/" 2>&1) ||
  fail "the host reported that $url is served, and it is not: $page" \
    "see what runs: \`docker ps --filter name=${PREFIX}_\`, and what the proxy says: \`docker logs ${PREFIX}_proxy\`"
printf '%s\n' "$page"

# A report is known here before it has come to the collector.
collected() { "$replicator" events --host "$HOST" --kind apply-reported -o json | grep -q .; }
within 20 collected ||
  fail "the collector holds no report of the host" \
    "see whether the agent reaches the broker: \`REPLICATOR_HOME='$REPLICATOR_HOME' $replicator fleet status\`"
say "what the host told"
"$replicator" events --host "$HOST" --since 15m
say "the fleet"
"$replicator" fleet status

cat <<END

Done in $((SECONDS - began)) s. Now
  $make demo         again: another declaration, and everything is unchanged
  curl $url
  $make demo-down    takes all of it away
Change examples/clanker.yml or set another secret, and look before it is done:
  export REPLICATOR_HOME='$REPLICATOR_HOME'
  $replicator plan ${files[*]}
END
