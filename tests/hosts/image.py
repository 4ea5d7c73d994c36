"""The root of a host: Debian with systemd, sshd, sudo and Python, made by mmdebstrap and cached by the checksum of its recipe.

What this proves: nothing by itself. Every host has it as the lower half of an overlay of its own.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from tests.testbed.tools import ToolError, cache_root, debian_source, locked

SUITE = "bookworm"
USER = "ops"
# conmon and crun are for CRI-O, which does not start without them.
_PACKAGES = ("conmon", "crun", "dbus", "iproute2", "openssh-server", "procps", "python3", "sudo", "systemd", "systemd-sysv")
_OPTIONS = ('--aptopt=APT::Install-Recommends "0"', "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*")
# A host shares its kernel with the machine: what would change that kernel's settings has no business here.
_MASKED = ("systemd-binfmt", "systemd-modules-load", "systemd-remount-fs", "systemd-sysctl")
_FILES = {
    # Each command over a connection is counted: tests/hosts/node.py, Host.calls.
    "etc/ssh/sshd_config.d/tests.conf": "LogLevel VERBOSE\nUseDNS no\n",
    f"etc/sudoers.d/{USER}": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
    # Debian's unit wants a lower oom_score_adj, for which many a CI machine's root has no right.
    "etc/systemd/system/containerd.service.d/oom.conf": "[Service]\nOOMScoreAdjust=0\n",
    "etc/systemd/journald.conf.d/tests.conf": "[Journal]\nStorage=volatile\nRateLimitBurst=0\n",
}


def root() -> pathlib.Path:
    """The root directory, made first where the cache has not got it. Raises ToolError when it cannot be made."""
    home = cache_root() / "host-root" / f"{SUITE}-{_checksum()}"
    if home.is_dir():
        return home
    with locked("host-root"):
        if not home.is_dir():
            home.parent.mkdir(exist_ok=True)
            draft = pathlib.Path(tempfile.mkdtemp(prefix=".draft-", dir=home.parent))
            try:
                _make(draft / "root")
                (draft / "root").rename(home)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
    return home


def _checksum() -> str:
    recipe = repr((SUITE, USER, _PACKAGES, _OPTIONS, _MASKED, _FILES))
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _make(directory: pathlib.Path) -> None:
    uri, signed = debian_source()
    option = f"[signed-by={signed}] " if signed else ""
    # In a mount namespace of its own: what it mounts below the directory is gone when it ends, however it ends.
    command = [
        "unshare", "--mount", "--", "nice", "mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", *_OPTIONS,
        f"--include={','.join(_PACKAGES)}", SUITE, str(directory), f"deb {option}{uri} {SUITE} main",
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=1800, check=False)
    if done.returncode:
        raise ToolError(f"mmdebstrap cannot make the root of the hosts:\n{done.stdout[-3000:]}")
    for path, text in _FILES.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for unit in _MASKED:
        os.symlink("/dev/null", directory / "etc/systemd/system" / f"{unit}.service")
    # A host makes its own.
    (directory / "etc/machine-id").write_text("", encoding="utf-8")
    subprocess.run(["chroot", str(directory), "useradd", "--create-home", "--shell", "/bin/bash", "--password", "*", USER], check=True, timeout=60)
