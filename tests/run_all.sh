#!/usr/bin/env bash
# Runs make targets side by side, all of them even when one fails, and ends with a line that counts.
#
#   tests/run_all.sh 3 catalogue unit lint     three at a time; give the longest first, so that none of them ends alone
#
# What a target prints is kept in .cache/test/TARGET.log and shown when the target ends.
set -u
cd "$(dirname "$0")/.." || exit 2
logs=.cache/test
rm -rf "$logs"
mkdir -p "$logs"
at_once=$1
shift
printf '%s\n' "$@" >"$logs/waiting"

# The next target, or nothing when none waits.
take() {
  {
    flock 8
    sed -n 1p "$logs/waiting"
    sed -i 1d "$logs/waiting"
  } 8>"$logs/taking"
}

lane() {
  local target start word
  while target=$(take) && [ -n "$target" ]; do
    start=$SECONDS word=FAILED
    make --no-print-directory "$target" >"$logs/$target.log" 2>&1 && word=passed
    printf '%-16s %-7s %5d s\n' "$target" "$word" $((SECONDS - start)) >"$logs/$target.result"
    {
      flock 9
      printf '\n== make %s ==\n' "$target"
      cat "$logs/$target.log" "$logs/$target.result"
    } 9>"$logs/printing"
  done
}

for ((number = 0; number < at_once; number++)); do
  lane &
done
wait
printf '\n'
cat "$logs"/*.result
passed=$(grep -l ' passed ' "$logs"/*.result | wc -l)
failed=$(grep -l ' FAILED ' "$logs"/*.result | wc -l)
printf '%d of %d passed, %d failed\n' "$passed" $# "$failed"
[ "$failed" = 0 ] && [ "$passed" = $# ]
