#!/usr/bin/env bash
# Runs the make targets given, all of them even when one fails, and ends with a line that counts.
set -u
cd "$(dirname "$0")/.." || exit 2
mkdir -p .cache
passed=0 failed=0 table=''
for target in "$@"; do
  printf '\n== make %s ==\n' "$target"
  start=$SECONDS
  if make --no-print-directory "$target"; then
    passed=$((passed + 1)) word=passed
  else
    failed=$((failed + 1)) word=FAILED
  fi
  table+=$(printf '%-14s %-7s %5d s' "$target" "$word" $((SECONDS - start)))$'\n'
done
printf '\n%s\n%d passed, %d failed\n' "$table" "$passed" "$failed"
[ "$failed" = 0 ]
