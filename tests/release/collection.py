# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collections as files: a checkout as a release would see it, its tarball, and a tarball of a collection that is installed."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import typing as t

from tests.integration.ansible_runs import ROOT

#: What a released tarball has at its top, and nothing else.
TOP = frozenset(
    "CHANGELOG.md CHANGELOG.rst CONTRIBUTING.md FILES.json LICENSE MANIFEST.json README.md SECURITY.md changelogs docs "
    "execution-environment.yml meta playbooks plugins roles".split()
)
#: A single file beyond this is a mistake.
_MAX_BYTES = 400_000


def checkout(to: pathlib.Path) -> pathlib.Path:
    """A copy of what git knows here, or would take in."""
    asked = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".", ":!tests/cases"]
    for name in filter(None, subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


def wrong_in(tarball: pathlib.Path) -> list[str]:
    """What a released tarball must not be: each a sentence; none, where it is clean."""
    with tarfile.open(tarball) as built:
        members = built.getmembers()
    tops = {member.name.partition("/")[0] for member in members}
    found = [f"{name} is not for a release" for name in sorted(tops - TOP)] + [f"{name} is missing" for name in sorted(TOP - tops)]
    for member in members:
        name = pathlib.PurePosixPath(member.name)
        if "__pycache__" in name.parts or name.name == ".plugin-cache.yaml" or name.suffix in (".pyc", ".orig", ".rej", ".swp"):
            found.append(f"{name} was left by a tool")
        if not (member.isfile() or member.isdir()):
            found.append(f"{name} is neither a file nor a directory")
        if member.isfile() and member.size > _MAX_BYTES:
            found.append(f"{name} has {member.size} bytes")
        if member.isfile() and not member.size and name.name != "__init__.py":
            found.append(f"{name} is empty")
    fragments = [member.name for member in members if member.name.startswith("changelogs/fragments/") and member.isfile()]
    return found + [f"{name} is a fragment that the changelog has not taken in" for name in fragments]


def packed(installed: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """The tarball of a collection that is installed, as a server would have handed it out.

    What the installation left out of the original (tests, documentation) is left out of its manifest too.
    """
    manifest = json.loads((installed / "MANIFEST.json").read_text(encoding="utf-8"))
    names = [entry["name"] for entry in json.loads((installed / "FILES.json").read_text(encoding="utf-8"))["files"]]
    entries = [_entry(installed, name) for name in names if (installed / name).exists()]
    files = json.dumps({"files": entries, "format": 1}, indent=1).encode()
    manifest["file_manifest_file"].update(chksum_sha256=hashlib.sha256(files).hexdigest())
    info = manifest["collection_info"]
    tarball = to / f"{info['namespace']}-{info['name']}-{info['version']}.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        for name, data in (("MANIFEST.json", json.dumps(manifest, indent=1).encode()), ("FILES.json", files)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for entry in entries:
            if entry["name"] != ".":
                archive.add(installed / entry["name"], entry["name"], recursive=False)
    return tarball


def _entry(installed: pathlib.Path, name: str) -> dict[str, t.Any]:
    if (installed / name).is_dir():
        return {"name": name, "ftype": "dir", "chksum_type": None, "chksum_sha256": None, "format": 1}
    digest = hashlib.sha256((installed / name).read_bytes()).hexdigest()
    return {"name": name, "ftype": "file", "chksum_type": "sha256", "chksum_sha256": digest, "format": 1}
