# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environment of what `make docs` and `make release-check` need beside .venv, made once and kept in the cache of built tools.

It is one of its own, since galaxy-importer wants older packages than the tests.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
import shutil
import subprocess
import sys
import sysconfig

from tests.testbed.tools import cache_root, locked

_HERE = pathlib.Path(__file__).resolve().parent
_NAME = "release-tools"


@functools.cache
def programs() -> pathlib.Path:
    """The directory of its programs, installed first if the cache has not got them. Raises CalledProcessError where pip cannot."""
    files = [_HERE / "requirements.txt", _HERE / "constraints.txt"]
    # An environment belongs to the very Python that made it.
    parts = [path.read_bytes() for path in files] + [f"{sys.version} {sysconfig.get_path('stdlib')}".encode()]
    home = cache_root() / _NAME / hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]
    with locked(_NAME):
        if not (home / ".ready").exists():
            shutil.rmtree(home, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            pip = [str(home / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "-r", str(files[0]), "-c", str(files[1])], check=True)
            (home / ".ready").touch()
    return home / "bin"
