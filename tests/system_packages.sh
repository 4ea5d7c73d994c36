#!/usr/bin/env bash
# Are the packages of system-packages.txt there?  --install: install those that are not (root, Debian).
set -euo pipefail
missing=()
while read -r package command _reason; do
  case "$package" in ''|'#'*) continue ;; esac
  command -v "$command" >/dev/null 2>&1 || missing+=("$package")
done <"$(dirname "$0")/system-packages.txt"
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "${1:-}" = --install ]; then
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive exec apt-get install -y -q --no-install-recommends "${missing[@]}"
fi
echo "make test needs these system packages: ${missing[*]}. As root: apt-get install ${missing[*]}" >&2
exit 1
