#!/usr/bin/env bash
# Takes away what `make demo` made, and compares what is on this machine with what was before.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/demo-lib.sh

demand_root demo-down
if [ ! -e "$DEMO_DIR/before/complete" ]; then
  echo "there is no demo in $DEMO_DIR; nothing was done"
  exit 0
fi
DOCKERD_PROCESS=$DEMO_DIR/run/dockerd scripts/prepare-machine.sh

if [ -e "$REPLICATOR_HOME/fleets/demo/fleet.toml" ]; then
  say "taking the host down"
  # The host is told to remove what it was given: broker and collector may have ended meanwhile.
  raise_broker
  raise_serve
  "$replicator" host down "$HOST" "${files[@]}" "${agent[@]}"
fi

say "ending collector and broker"
lower serve
lower broker

say "removing volumes and images"
now=$DEMO_DIR/now
take_lists "$now"
added "$DEMO_DIR/before/volumes" "$now/volumes" | { grep "^${PREFIX}_" || true; } |
  xargs --no-run-if-empty docker volume rm >/dev/null
scripts/build-lab-images.sh --names | LC_ALL=C sort >"$now/ours"
# One that somebody's container uses stays, and is told of below.
added "$DEMO_DIR/before/images" "$now/images" | LC_ALL=C comm -12 - "$now/ours" |
  xargs --no-run-if-empty docker image rm >/dev/null || true
docker image prune --force --filter label=replicator.lab=image >/dev/null

take_lists "$now"
left=
for list in containers networks volumes images files units processes; do
  found=$(added "$DEMO_DIR/before/$list" "$now/$list")
  [ -z "$found" ] && continue
  left=1
  printf '%s that were not here before:\n%s\n' "$list" "$found" >&2
done
if [ -n "$left" ]; then
  fail "not everything is as it was before the demo" "what is not the demo's may stay; then remove $DEMO_DIR"
fi

end_process "$DEMO_DIR/run/dockerd"
packages=$(cat "$DEMO_DIR/installed" 2>/dev/null | tr '\n' ' ') || true
rm -rf "$DEMO_DIR"
echo "nothing of the demo is left: no container, network, volume, image, process, unit or file"
[ -z "$packages" ] || echo "these packages were installed for it and stay: $packages"
echo "what was built stays in target/ until \`cargo clean\`"
