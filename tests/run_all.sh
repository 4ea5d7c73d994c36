#!/usr/bin/env bash
# Runs make targets in lanes side by side, all of them even when one fails, and ends with a line that counts.
#
#   tests/run_all.sh 'lint unit' 'catalogue differential'     two lanes, each in its order
#
# What a target prints is kept in .cache/test/TARGET.log and shown when the target ends.
set -u
cd "$(dirname "$0")/.." || exit 2
logs=.cache/test
rm -rf "$logs"
mkdir -p "$logs"

lane() {
  local target start word
  for target in "$@"; do
    start=$SECONDS word=FAILED
    make --no-print-directory "$target" >"$logs/$target.log" 2>&1 && word=passed
    printf '%-14s %-7s %5d s\n' "$target" "$word" $((SECONDS - start)) >"$logs/$target.result"
    {
      flock 9
      printf '\n== make %s ==\n' "$target"
      cat "$logs/$target.log" "$logs/$target.result"
    } 9>"$logs/printing"
  done
}

for targets in "$@"; do
  # shellcheck disable=SC2086  # a lane is a list of words
  lane $targets &
done
wait
printf '\n'
cat "$logs"/*.result
passed=$(grep -l ' passed ' "$logs"/*.result | wc -l)
failed=$(grep -l ' FAILED ' "$logs"/*.result | wc -l)
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
