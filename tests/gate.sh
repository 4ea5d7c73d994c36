#!/usr/bin/env bash
# `make gate`: the audit, and a last line that says which nodes fail. Arguments: those of ansible-playbook.
#   nothing set       the embedded example cluster (or EXAMPLE, a copy of it): ends with 0 when exactly the nodes of its
#                     broken-on-purpose.txt fail
#   INVENTORY set     real nodes: ends with 0 when no host fails
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
report=$(mktemp --suffix=.json) || exit 2
trap 'rm -f "$report"' EXIT
example=${EXAMPLE:-examples/cluster}
[ -n "${INVENTORY:-}" ] || [ -f "$example/broken-on-purpose.txt" ] || { echo "make gate: there is no $example/broken-on-purpose.txt" >&2; exit 2; }
# Not every shell expands the ~ in KUBECONFIG=~/… when make's variable is given so.
[ -z "${KUBECONFIG:-}" ] || export K8S_AUTH_KUBECONFIG=${KUBECONFIG/#\~/$HOME}
.venv/bin/ansible-playbook kubenode.runtime_gate.audit --inventory "${INVENTORY:-$example/inventory.yml}" \
  ${LIMIT:+--limit "$LIMIT"} ${CHECK:+--check} -e "runtime_gate_report_path=$report" "$@"
status=$?
# The report is empty where the run ended before any host was judged: that is never a pass.
failing=$(.venv/bin/python -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))["failing_nodes"]))' "$report" 2>/dev/null) ||
  { echo "The audit ended before it could judge a node (see above)."; exit 2; }
failing=$(sort -u <<<"$failing")
number=$(grep -c . <<<"$failing")
names=$(paste -sd' ' <<<"$failing")
nodes="$number nodes fail"
[ "$number" != 1 ] || nodes="1 node fails"
if [ -n "${INVENTORY:-}" ]; then
  if [ "$number" = 0 ] && [ "$status" = 0 ]; then
    echo "No node fails."
    exit 0
  fi
  echo "$nodes: ${names:-none, but ansible-playbook ended with $status}"
  exit $((status > 0 ? status : 1))
fi
expected=$(grep -v '^#' "$example/broken-on-purpose.txt" | awk 'NF { print $1 }' | sort -u)
if [ "$failing" = "$expected" ]; then
  echo "$nodes: $names: exactly those that are broken on purpose. The gate works."
  exit 0
fi
echo "$nodes: ${names:-none}, but broken on purpose are: $(paste -sd' ' <<<"$expected")."
exit 1
