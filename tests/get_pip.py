"""Stands in for get-pip.py, which ansible-test looks for on the network: pip comes with Python."""

from __future__ import annotations

import subprocess
import sys

# A process of its own: ensurepip switches pip's configuration off in its environment.
subprocess.check_call([sys.executable, "-m", "ensurepip"])
arguments = [argument for argument in sys.argv[1:] if argument not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", *arguments]))
