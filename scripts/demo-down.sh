#!/usr/bin/env bash
# Takes away what `make demo` made, and compares what is on this machine with what was before.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/demo-lib.sh

demand_root demo-down
if [ ! -e "$MARK" ]; then
  echo "there is no demo in $DEMO_DIR; nothing was done"
  exit 0
fi
if [ ! -e "$DEMO_DIR/before/complete" ]; then
  # Cut off before it made anything, or while it was taken away.
  forget
  exit 0
fi
DOCKERD_PROCESS=$DEMO_DIR/run/dockerd scripts/prepare-machine.sh

if [ -e "$REPLICATOR_HOME/fleets/demo/fleet.toml" ]; then
  say "taking the host down"
  # They may be gone, with all of `target/`.
  if [ ! -x "$replicator" ] || [ ! -x "${replicator%/*}/replicator-host-agent" ]; then
    command -v cargo >/dev/null || fail "there is no \`cargo\`, and $replicator is gone" "install the Rust toolchain: https://rustup.rs"
    cargo build --workspace
  fi
  scripts/fetch-lab-binaries.sh
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

# What stood in the place of a file of the demo's is nobody's to remove. The agent keeps edits of its own files there
# too, and those go with the demo; its logs tell which of both there are.
noted() {
  local root=$DEMO_DIR/now.agent
  # The agent looks below a root, and the folder of one that was retired has another name.
  rm -rf "$root"
  mkdir -p "$root/var/lib"
  ln -s "$1" "$root/var/lib/replicator-host-agent"
  "${replicator%/*}/replicator-host-agent" --root "$root" ledger show -o json
}
for state in "$DEMO_DIR"/agent/var/lib/replicator-host-agent*; do
  kept=$(find "$state/originals" -type f 2>/dev/null) || true
  [ -n "$kept" ] || continue
  for ledger in "$state/ledger" "$state"/before-*/ledger; do
    [ -e "$ledger" ] || [ "$ledger" = "$state/ledger" ] || continue
    # One that cannot be read, or is not whole, may have told of something found.
    if ! log=$(noted "${ledger%/ledger}") ||
      grep -qE '"kind": *"(original-kept|ledger-set-aside|ledger-dropped)"' <<<"$log"; then
      fail "the agent keeps what it found in the place of files it wrote: $state/originals" \
        "take it out of there, then remove $DEMO_DIR"
    fi
  done
  printf 'edits of files of the demo were kept, and go with it:\n%s\n' "$kept"
done
forget
echo "what was built stays in target/ until \`cargo clean\`"
