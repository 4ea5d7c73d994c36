"""CRI-O as a package lays it: the program of the test bed, a unit, and what it wants to find before it starts.

What this proves: nothing by itself. conmon and crun are Debian's own, in the root of every host (image.py). ``pinns`` and ``nft`` do
nothing: the daemon wants them to be there, and would call them for a pod; none is made here. Images lie in plain directories, as
there is no overlay on overlay.
"""

from __future__ import annotations

import pathlib

PROGRAM = "usr/bin/crio"
_STAND_IN = "#!/bin/sh\n# a stand-in of the tests\n"
_PROGRAMS = {"usr/bin/pinns": _STAND_IN, "usr/bin/nft": _STAND_IN}
_FILES = {
    "etc/containers/policy.json": '{"default": [{"type": "insecureAcceptAnything"}]}\n',
    "etc/containers/storage.conf": '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n',
    "usr/lib/systemd/system/crio.service": """[Unit]
Description=CRI-O
After=network.target

[Service]
Type=notify
ExecStart=/usr/bin/crio
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
""",
}


def lay_beside(root: pathlib.Path) -> None:
    """Lay down what belongs to the program. root: of the host."""
    for inside, text in {**_FILES, **_PROGRAMS}.items():
        target = root / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        target.chmod(0o755 if inside in _PROGRAMS else 0o644)
