#!/usr/bin/env bash
# Runs molecule's scenarios one after the other, all of them even when one fails, and ends with a line that counts.
#
#   tests/molecule.sh [--slice] [SCENARIO …]      default: every scenario of extensions/molecule
#
# With --slice, a machine that cannot have such hosts is told loudly and is no failure, unless RUNTIME_GATE_HOSTS=required.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
may_skip=
if [ "${1:-}" = --slice ]; then
  [ "${RUNTIME_GATE_HOSTS:-}" = required ] || may_skip=yes
  shift
fi
if [ $# -eq 0 ]; then
  for file in extensions/molecule/*/molecule.yml; do
    set -- "$@" "$(basename "$(dirname "$file")")"
  done
fi

reason=$(python -m tests.hosts check)
case $? in
  0) ;;
  1)
    printf '\n*** NOT RUN: %d scenarios on whole hosts (%s). This machine cannot have such hosts: %s ***\n' $# "$*" "$reason"
    [ -n "$may_skip" ]
    exit
    ;;
  *) exit 2 ;;
esac

export MOLECULE_COMMAND_BORDERS=false NO_COLOR=1 ANSIBLE_NOCOLOR=1
mkdir -p .cache/molecule
passed=0 failed=0 results=
for scenario; do
  start=$SECONDS word=FAILED
  export MOLECULE_EPHEMERAL_DIRECTORY=$PWD/.cache/molecule/$scenario
  if molecule test --scenario-name "$scenario"; then
    word=passed passed=$((passed + 1))
  else
    failed=$((failed + 1))
    # molecule removes the hosts of a test that failed, but not where its own configuration is wrong.
    python -m tests.hosts down "$MOLECULE_EPHEMERAL_DIRECTORY/hosts"
  fi
  results+=$(printf '\n%-14s %-7s %5d s' "$scenario" "$word" $((SECONDS - start)))
done
printf '\n%s\n\n%d scenarios passed, %d failed\n' "$results" "$passed" "$failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
