#!/usr/bin/env bash
# Proves that the tests would notice: for each refusal code, `lab/mutants/CODE.patch` takes the check away that makes
# it, and some test of the crate it changes must turn red. Works on a copy of what is committed, never on this folder.
#
#   mutants.sh [CODE...]    all of them without arguments
#
# Ends with 1 where a mutant survives, does not apply or does not compile.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=target/mutants/copy
export CARGO_TARGET_DIR=$PWD/target/mutants/build CARGO_TERM_COLOR=never
log=$PWD/target/mutants/log
patches=("${@/#/lab/mutants/}")
patches=("${patches[@]/%/.patch}")
[ $# -gt 0 ] || patches=(lab/mutants/*.patch)

rm -rf "$copy"
mkdir -p "$copy"
# The copy is no repository: without this `git apply` would take the one around it, and skip every file.
export GIT_CEILING_DIRECTORIES=$PWD/target/mutants
git archive HEAD | tar -x -C "$copy"

# The packages whose files a patch changes, as arguments of cargo.
packages() {
  sed -n 's|^+++ b/\([^/]*\)/.*|\1|p' "$1" | sort -u | while read -r folder; do
    sed -n 's/^name = "\(.*\)"$/--package=\1/p' "$folder/Cargo.toml" | head -n 1
  done
}

survived=0
for patch in "${patches[@]}"; do
  code=$(basename "$patch" .patch)
  mapfile -t arguments < <(packages "$patch")
  verdict=
  if ! (cd "$copy" && git apply "../../../$patch") 2>"$log"; then
    verdict="does not apply"
  else
    if ! (cd "$copy" && cargo test --quiet --lib "${arguments[@]}" --no-run) >"$log" 2>&1; then
      verdict="does not compile"
    else
      (cd "$copy" && timeout 300 cargo test --quiet --lib "${arguments[@]}") >"$log" 2>&1 || true
      # A run that ended otherwise than by a failed test proves nothing.
      found=$(sed -n 's/^    \([a-z_:0-9]*\)$/\1/p' "$log" | sort -u | head -n 3 | tr '\n' ' ')
      [ -n "$found" ] || verdict="survived: no test turned red"
    fi
    (cd "$copy" && git apply --reverse "../../../$patch")
  fi
  if [ -n "$verdict" ]; then
    survived=$((survived + 1))
    printf '%-22s %s\n' "$code" "$verdict"
    tail -n 5 "$log" | sed 's/^/    /'
  else
    printf '%-22s found by %s\n' "$code" "$found"
  fi
done
echo "$((${#patches[@]} - survived)) of ${#patches[@]} mutants found"
[ "$survived" = 0 ]
