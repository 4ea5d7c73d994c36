#!/bin/sh
# Prints the first real Python 3.11 or later that can make a virtual environment.
# sys.executable and not the name: shims of version managers start another interpreter in another directory.
for name in ${PYTHON:-python3.11 python3 python3.12 python3.13 python3.14}; do
  found=$("$name" -c 'import ensurepip, sys; print(sys.executable) if sys.version_info >= (3, 11) else sys.exit(1)' 2>/dev/null) || continue
  echo "$found"
  exit 0
done
echo "make: no Python 3.11 or later with venv was found. Install one (Debian: apt-get install python3 python3-venv) or say which: make PYTHON=/path/to/python3" >&2
exit 1
