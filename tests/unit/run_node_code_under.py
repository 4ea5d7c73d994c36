#!/usr/bin/env python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tables of node_tables.py under other interpreters, as they are on nodes: no pytest, no Ansible, no TOML parser.

    tests/unit/run_node_code_under.py python3.8 /usr/bin/python3 ...

Prints one line an interpreter and ends with 1 when a check fails, 2 when an interpreter cannot be started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_INSIDE = """
import platform, sys, traceback
sys.path[:0] = [%r]
from ansible_collections.kubenode.runtime_gate.tests.unit import node_tables
checks = node_tables.checks()
failed = 0
for name, check in checks:
    try:
        check()
    except Exception:
        failed += 1
        print("FAILED", name)
        traceback.print_exc(file=sys.stdout)
print("Python %%s: %%d checks, %%d failed" %% (platform.python_version(), len(checks), failed))
sys.exit(1 if failed or not checks else 0)
"""


def main(interpreters: list) -> int:
    if not interpreters:
        print(__doc__)
        return 2
    worst = 0
    with tempfile.TemporaryDirectory() as directory:
        namespace = os.path.join(directory, "ansible_collections", "kubenode")
        os.makedirs(namespace)
        os.symlink(_ROOT, os.path.join(namespace, "runtime_gate"))
        for interpreter in interpreters:
            command = [interpreter, "-B", "-c", _INSIDE % directory]
            try:
                code = subprocess.run(command, cwd=directory, check=False).returncode
            except OSError as error:
                print("%s cannot be started: %s" % (interpreter, error.strerror))
                code = 2
            worst = max(worst, 1 if code < 0 else code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
