#!/usr/bin/env bash
# What is too long for every change, run before a capability is called done: each check taken away must turn a test
# red, and the lab must hold several times in a row. Writes what it found to docs/soak/COMMIT.md.
#
#   REPEAT=5    how often the lab is run
set -euo pipefail
cd "$(dirname "$0")/.."

summary=docs/soak/$(git rev-parse --short HEAD).md
found=target/soak
mkdir -p docs/soak "$found"

failed=0
scripts/mutants.sh | tee "$found/mutants" || failed=1

# The same selection as `make test`, so that nothing is compiled a second time.
cargo build --workspace
: >"$found/lab"
for turn in $(seq 1 "${REPEAT:-5}"); do
  began=$SECONDS
  ended="every test passed"
  cargo test --workspace --test lab >"$found/lab-$turn" 2>&1 || {
    failed=1
    ended=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/`\1` failed/p' "$found/lab-$turn" | paste -sd ' ')
    ended=${ended:-it ended without a failed test, see $found/lab-$turn}
  }
  echo "run $turn: $ended, $((SECONDS - began)) s" | tee -a "$found/lab"
done

{
  printf '# Soak of %s\n\n' "$(git log -1 --format='`%h` (%s)')"
  printf '## Mutants\n\nEach takes one check away; `found by` names tests that then turned red.\n\n```\n'
  cat "$found/mutants"
  printf '```\n\n## The lab, over and over\n\n```\n'
  cat "$found/lab"
  printf '```\n'
} >"$summary"
echo "written: $summary"
exit "$failed"
