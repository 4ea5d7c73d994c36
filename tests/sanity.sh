#!/usr/bin/env bash
# ansible-test sanity on a copy of what the collection ships: it refuses a tree that is not …/ansible_collections/NS/NAME.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/.cache/sanity
tree=$work/ansible_collections/kubenode/runtime_gate
mkdir -p "$work"
exec 9>"$work/lock"
flock 9
rm -rf "$tree"
mkdir -p "$tree" "$work/home/.ansible/test/cache"
# runtimeclass_crosscheck documents its connection options by a fragment of this collection.
mkdir -p "$work/ansible_collections/kubernetes"
ln -sfn "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ansible_collections/kubernetes/core" "$work/ansible_collections/kubernetes/core"
# Tests and examples are not shipped (ruff checks the tests), and hold recordings of foreign files, broken ones among them.
git ls-files -z --cached --others --exclude-standard -- . ':!tests' ':!examples' tests/sanity |
  while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
  tar --null -T - -cf - | tar -C "$tree" -xf -
# ansible-test fetches get-pip.py from the network; ensurepip does the same work without.
for version in 24_2 25_2; do
  cp tests/get_pip.py "$work/home/.ansible/test/cache/get_pip_$version.py"
done
# ansible-test passes neither the environment nor the home directory on: what is set for pip there goes into a file.
mkdir -p "$work/home/.config/pip"
{ echo '[global]'; python -m pip config list | sed -n "s/^\(global\|:env:\)\.\([a-z-]*\)='\(.*\)'\$/\2 = \3/p" | awk '!seen[$1]++'; } \
  >"$work/home/.config/pip/pip.conf"
cd "$tree"
git init -q . && git add -A
HOME=$work/home exec ansible-test sanity --local --color no --python default "$@"
