"""A node on which real pod sandboxes run: ctr, the shim and runc of Debian, and a pause image made by hand.

What this proves: nothing by itself. The image holds one static program that sleeps.
"""
from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import pathlib
import tarfile
import typing as t

from tests.faults.node import FaultNode, Tree
from tests.testbed.host import CONFIG, ContainerdHost, HostError
from tests.testbed.tools import tool

LINE = "2.1"
IMAGE = "runtime-gate.example/pause:1"
#: runc, but the end of a sandbox takes so long that a run can be struck in between.
SLOW = "/usr/local/bin/slow-runc"
STOPPING = "/run/stopping"
_SLOW_SCRIPT = f"""#!/bin/sh
case " $* " in *" kill "*) touch {STOPPING}; sleep 3;; esac
exec /usr/sbin/runc "$@"
"""
_RUNTIME = 'plugins."io.containerd.cri.v1.runtime"'
_IMAGES = 'plugins."io.containerd.cri.v1.images"'
# This machine may not lower oom_score_adj, and has no overlay on overlay.
ROOT = f"""version = 3

[{_RUNTIME}]
restrict_oom_score_adj = true

[{_IMAGES}]
snapshotter = "native"

[{_IMAGES}.pinned_images]
sandbox = "{IMAGE}"
"""
BEFORE: Tree = {CONFIG: ROOT}


def handler(name: str, runtime_type: str = "io.containerd.runc.v2", binary: str | None = None) -> str:
    options = f'\n[{_RUNTIME}.containerd.runtimes.{name}.options]\nBinaryName = "{binary}"\n' if binary else ""
    return f'\n[{_RUNTIME}.containerd.runtimes.{name}]\nruntime_type = "{runtime_type}"\n{options}'


def prepare(node: FaultNode) -> None:
    """The node can run sandboxes, and its daemon has ROOT. Raises HostError when it cannot."""
    node.reset(BEFORE)
    equip(node.host)


def equip(host: ContainerdHost) -> None:
    """Everything beside the daemon, which runs with ROOT, that a sandbox needs. Raises HostError when it cannot be had."""
    programs = tool(f"containerd-{LINE}").parent
    for name in ("ctr", "containerd-shim-runc-v2"):
        host.install(programs / name, f"/usr/bin/{name}")
    host.install(tool("runc"), "/usr/sbin/runc")
    host.install_script(SLOW, _SLOW_SCRIPT)
    host.path("/run/pause.tar").write_bytes(pause_image(tool("stand-in")))
    done = host.run(["ctr", "-n", "k8s.io", "images", "import", "--local", "--snapshotter", "native", "/run/pause.tar"])
    if done.returncode:
        raise HostError(f"the pause image cannot be imported: {done.stderr}")


def sandboxes(host: ContainerdHost) -> list[str]:
    """What is there, by the word of containerd's own client."""
    done = host.run(["ctr", "-n", "k8s.io", "containers", "ls", "-q"])
    if done.returncode:
        raise HostError(done.stderr)
    return done.stdout.split()


def remove_all(host: ContainerdHost) -> None:
    """So that no control group of a sandbox stays behind on this machine."""
    for identifier in sandboxes(host):
        for command in ("stopp", "rmp"):
            host._ask(command, identifier)
    for group in pathlib.Path("/sys/fs/cgroup").glob("*/runtime-gate"):
        # The parent of the probe's groups, in each hierarchy; a run beside this one may still use it.
        with contextlib.suppress(OSError):
            group.rmdir()


def pause_image(program: pathlib.Path) -> bytes:
    """An OCI image layout as a tar file."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        entry = archive.gettarinfo(str(program), "pause")
        entry.mode, entry.uid, entry.gid = 0o755, 0, 0
        with program.open("rb") as file:
            archive.addfile(entry, file)
    packed = gzip.compress(layer.getvalue(), mtime=0)
    blobs: dict[str, bytes] = {}
    config = {
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer.getvalue()).hexdigest()]},
    }  # fmt: skip
    kind = "application/vnd.oci.image."
    manifest = {
        "schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
        "config": _blob(blobs, json.dumps(config).encode(), kind + "config.v1+json"),
        "layers": [_blob(blobs, packed, kind + "layer.v1.tar+gzip")],
    }  # fmt: skip
    top = _blob(blobs, json.dumps(manifest).encode(), kind + "manifest.v1+json")
    top["annotations"] = {"io.containerd.image.name": IMAGE}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps({"schemaVersion": 2, "manifests": [top]}).encode()}
    files.update({f"blobs/sha256/{digest}": data for digest, data in blobs.items()})
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _blob(blobs: dict[str, bytes], data: bytes, kind: str) -> dict[str, t.Any]:
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data)}
