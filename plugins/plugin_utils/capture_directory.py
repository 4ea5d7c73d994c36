# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture as a directory: read with distrust, written whole or not at all.

A capture may come from anywhere, so nothing in it is followed or believed: links, devices, huge and deeply nested
content are refused, and secrets that its writer left in it are masked here again.
"""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import stat
import tempfile
import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.files import decode, decode_configuration
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld

FORMAT = 1
MAX_FILE_SIZE = 16 * 1024 * 1024
MAX_TOTAL_SIZE = 64 * 1024 * 1024
MAX_FILES = 2000
MAX_DEPTH = 40

NODE = "node.yml"
ROOTFS = "rootfs"
DUMP = "config-dump.toml"
DUMP_STDERR = "config-dump.stderr"
DUMP_RC = "config-dump.rc"
STATUS_CONFIG = "status-config.toml"
INFO = "crictl-info.json"
#: CRI-O's answer to a sandbox with a handler that cannot exist.
PROBE = "probe.txt"
_PARTS = (NODE, ROOTFS, DUMP, DUMP_STDERR, DUMP_RC, STATUS_CONFIG, INFO, PROBE)

_TEXT_KEYS = (
    "name engine version version_output config_path config_dir cmdline endpoint daemon_started daemon_reloaded cri_error "
    "crictl collected_at collector cri_state next_version next_version_output next_config_path daemon_exe daemon_path "
    "daemon_cwd hostname boot_id machine_id os arch distribution next_cmdline reload_evidence"
).split()
_MAPPING_KEYS = "binaries files not_utf8 unreadable withheld links sha256 kubelet unit environment next_environment binary_times".split()
_LIST_KEYS = "directories absent truncated runtimes undecided problems not_executable".split()
_PLACEHOLDER = "__RUNTIME_GATE_MASKED_"
_COMMAND_LINES = ("cmdline", "next_cmdline", "exec_start")


class _NodeLoader(yaml.SafeLoader):
    """YAML without aliases (a small file could unfold to gigabytes) and without dates (they stay texts)."""

    def compose_node(self, parent: t.Any, index: t.Any) -> t.Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed here")
        return super().compose_node(parent, index)


_NodeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_capture(path: str) -> t.Dict[str, t.Any]:
    """Read and check a capture directory, and mask what it may hold.

    :raises RuntimeGateError: it is not there, is no capture, or is not to be trusted.
    """
    if not os.path.isdir(path):
        folder, name = os.path.split(os.path.normpath(path))
        raise RuntimeGateError(
            "The capture %s is no directory. Give the directory that holds %s, or record it: ansible-playbook -i INVENTORY "
            "kubenode.runtime_gate.capture --limit %s -e runtime_gate_capture_dest=%s" % (path, NODE, name, folder or ".")
        )
    data = _read_all(path)
    if not any(name == part or name.startswith(part + "/") for name in data for part in _PARTS):
        raise RuntimeGateError(
            "The capture %s holds nothing of a capture: none of %s is there. Give the directory of one node."
            % (path, ", ".join(_PARTS))
        )
    masker = Masker()
    node = _node(path, data)
    _check_node(path, node)
    files = _files(data, node, masker)
    info = _info(path, data, masker)
    dump = _dump(path, data, node, masker)
    status_config = _toml(data, STATUS_CONFIG, node, masker)
    probe = _text(path, data, PROBE)
    return {
        "format": FORMAT,
        "node": _masked_node(node, masker),
        "files": files,
        "dump": dump,
        "status_config": status_config,
        "info": info,
        "probe": masker.text(probe) if probe is not None else None,
    }


def _read_all(path: str) -> t.Dict[str, bytes]:
    """Path inside the capture -> bytes, of all regular files.

    :raises RuntimeGateError: something else than files and directories, or too much of them.
    """
    data: t.Dict[str, bytes] = {}
    total = 0
    queue = [""]
    entries = 0
    while queue:
        inside = queue.pop()
        for entry in sorted(_scan(path, inside), key=lambda one: one.name):
            entries += 1
            name = posixpath.join(inside, entry.name)
            facts = entry.stat(follow_symlinks=False)
            _check_entry(path, name, facts, entries)
            if stat.S_ISDIR(facts.st_mode):
                queue.append(name)
                continue
            data[name] = _read_file(path, name)
            total += len(data[name])
            if total > MAX_TOTAL_SIZE:
                raise RuntimeGateError("The capture %s is refused: it holds more than %d bytes." % (path, MAX_TOTAL_SIZE))
    return data


def _scan(path: str, inside: str) -> t.List["os.DirEntry[str]"]:
    try:
        with os.scandir(os.path.join(path, inside)) as entries:
            return list(entries)
    except OSError as error:
        raise RuntimeGateError("The capture %s cannot be read at %s: %s." % (path, inside or "/", error.strerror)) from None


def _check_entry(path: str, name: str, facts: os.stat_result, entries: int) -> None:
    reason = None
    if entries > MAX_FILES:
        reason = "it holds more than %d files" % MAX_FILES
    elif name.count("/") >= MAX_DEPTH:
        reason = "its directories are nested deeper than %d" % MAX_DEPTH
    elif stat.S_ISLNK(facts.st_mode):
        reason = "%s is a link; links are recorded in %s" % (name, NODE)
    elif not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):
        reason = "%s is neither a file nor a directory" % name
    elif stat.S_ISREG(facts.st_mode) and facts.st_size > MAX_FILE_SIZE:
        reason = "%s is larger than %d bytes" % (name, MAX_FILE_SIZE)
    if reason:
        raise RuntimeGateError("The capture %s is refused: %s." % (path, reason))


def _read_file(path: str, name: str) -> bytes:
    try:
        descriptor = os.open(os.path.join(path, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_FILE_SIZE + 1)
    except OSError as error:
        raise RuntimeGateError("The capture %s cannot be read at %s: %s." % (path, name, error.strerror)) from None


def _text(path: str, data: t.Mapping[str, bytes], name: str) -> t.Optional[str]:
    if name not in data:
        return None
    text, reason = decode(data[name])
    if text is None:
        raise RuntimeGateError("The capture %s cannot be read at %s: %s." % (path, name, reason))
    return text


def _node(path: str, data: t.Mapping[str, bytes]) -> t.Dict[str, t.Any]:
    text = _text(path, data, NODE)
    if text is None:
        return {}
    try:
        node = yaml.load(text, Loader=_NodeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RuntimeGateError("%s of the capture %s is no YAML: %s." % (NODE, path, _one_line(error))) from None
    if node is None:
        return {}
    if not isinstance(node, dict) or not all(isinstance(key, str) for key in node):
        raise RuntimeGateError("%s of the capture %s is no mapping of names." % (NODE, path))
    return node


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _check_node(path: str, node: t.Dict[str, t.Any]) -> None:
    """Normalise the scalars that the contract calls texts, refuse wrong shapes.

    :raises RuntimeGateError: a key has a value of another kind.
    """
    if node.pop("format", FORMAT) != FORMAT:
        raise RuntimeGateError("The capture %s has another format than %d; read it with a newer version." % (path, FORMAT))
    for keys, kind, word in ((_MAPPING_KEYS, dict, "a mapping"), (_LIST_KEYS, list, "a list")):
        for key in keys:
            if node.get(key) is None:
                node.pop(key, None)
            elif not isinstance(node[key], kind):
                raise RuntimeGateError("%s of the capture %s: %r must be %s." % (NODE, path, key, word))
    for key in _TEXT_KEYS:
        if node.get(key) is None:
            # `daemon_started: null` says that the daemon does not run, which no key at all does not say.
            if key != "daemon_started":
                node.pop(key, None)
        elif isinstance(node[key], (dict, list)):
            raise RuntimeGateError("%s of the capture %s: %r must be a text." % (NODE, path, key))
        else:
            # `version: 1.7` is a number for YAML.
            node[key] = str(node[key])


def _files(data: t.Mapping[str, bytes], node: t.Dict[str, t.Any], masker: Masker) -> t.Dict[str, str]:
    texts = {}
    for name in sorted(data):
        if name.startswith(ROOTFS + "/"):
            real = name[len(ROOTFS) :]
            text, reason = decode_configuration(data[name])
            if reason is not None:
                node.setdefault("not_utf8", {}).setdefault(real, reason)
            try:
                texts[real] = masker.toml(text)
            except Withheld as error:
                node.setdefault("withheld", {})[real] = str(error)
    return texts


def _toml(data: t.Mapping[str, bytes], name: str, node: t.Dict[str, t.Any], masker: Masker) -> t.Optional[str]:
    if name not in data:
        return None
    text, reason = decode(data[name])
    try:
        if text is not None:
            return masker.toml(text)
    except Withheld as error:
        reason = str(error)
    node.setdefault("withheld", {})[name] = reason
    return None


def _dump(
    path: str, data: t.Mapping[str, bytes], node: t.Dict[str, t.Any], masker: Masker
) -> t.Optional[t.Dict[str, t.Any]]:
    if not any(name in data for name in (DUMP, DUMP_STDERR, DUMP_RC)):
        return None
    stdout = _toml(data, DUMP, node, masker) if DUMP in data else ""
    code = (_text(path, data, DUMP_RC) or "0").strip()
    if not code.lstrip("-").isdigit():
        raise RuntimeGateError("%s of the capture %s is no exit code: %r." % (DUMP_RC, path, code[:40]))
    if stdout is None:
        return None
    stderr = data.get(DUMP_STDERR, b"").decode("utf-8", "replace")
    return {"stdout": stdout, "stderr": masker.text(stderr), "rc": int(code)}


def _info(path: str, data: t.Mapping[str, bytes], masker: Masker) -> t.Optional[t.Dict[str, t.Any]]:
    text = _text(path, data, INFO)
    if text is None:
        return None
    try:
        info = json.loads(text)
        if isinstance(info, dict):
            return masker.json(info)
    except ValueError as error:
        raise RuntimeGateError("%s of the capture %s is no JSON: %s." % (INFO, path, _one_line(error))) from None
    except RecursionError:
        raise RuntimeGateError("%s of the capture %s is nested too deeply." % (INFO, path)) from None
    raise RuntimeGateError("%s of the capture %s is no JSON object." % (INFO, path))


def _masked_node(value: t.Any, masker: Masker, key: str = "") -> t.Any:
    if isinstance(value, dict):
        return {name: _masked_node(inner, masker, str(name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [_masked_node(inner, masker) for inner in value]
    if isinstance(value, str):
        return masker.command_line(value) if key in _COMMAND_LINES else masker.text(value)
    return value


# ---- writing


def write_capture(capture: t.Mapping[str, t.Any], path: str) -> None:
    """Write a capture as a directory, which is replaced whole when it is there.

    :raises RuntimeGateError: a path in it leads out of the directory, or the directory cannot be written.
    """
    parts = _as_files(capture, path)
    parent = os.path.dirname(os.path.abspath(path))
    if os.path.islink(path):
        raise RuntimeGateError("The capture %s is not written: the path is a link." % path)
    try:
        os.makedirs(parent, exist_ok=True)
        fresh = tempfile.mkdtemp(prefix=".capture-", dir=parent)
        try:
            _write_all(fresh, parts)
            _swap(fresh, path)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise RuntimeGateError("The capture %s cannot be written: %s." % (path, error.strerror)) from None


def differs(capture: t.Mapping[str, t.Any], path: str) -> bool:
    """Whether the capture says something else than what lies in the directory, but for the time of collection."""
    expected = _as_files(capture, path)
    try:
        present = _read_all(path)
        then, now = _node(path, present), _node(path, expected)
    except RuntimeGateError:
        return True
    for node in (then, now):
        node.pop("collected_at", None)
    rest = [{name: data for name, data in side.items() if name != NODE} for side in (present, expected)]
    return then != now or rest[0] != rest[1]


def _as_files(capture: t.Mapping[str, t.Any], path: str) -> t.Dict[str, bytes]:
    """Path inside the directory -> bytes."""
    node = dict(capture["node"], format=FORMAT)
    node["sha256"] = {
        real: digest
        for real, digest in (node.get("sha256") or {}).items()
        # A digest of the original beside its masked text would let a short password be guessed offline.
        if real in capture["files"] and _PLACEHOLDER not in capture["files"][real]
    }
    if not node["sha256"]:
        del node["sha256"]
    parts = {NODE: yaml.safe_dump(node, sort_keys=True, allow_unicode=True, width=120).encode("utf-8")}
    for real, text in capture["files"].items():
        if not real.startswith("/") or real.startswith("//") or posixpath.normpath(real) != real or "\0" in real:
            raise RuntimeGateError("The capture %s is not written: %r leads out of it." % (path, real))
        parts[ROOTFS + real] = text.encode("utf-8")
    dump = capture.get("dump")
    if dump:
        parts[DUMP] = dump["stdout"].encode("utf-8")
        parts[DUMP_STDERR] = dump["stderr"].encode("utf-8")
        parts[DUMP_RC] = b"%d\n" % dump["rc"]
    if capture.get("status_config") is not None:
        parts[STATUS_CONFIG] = capture["status_config"].encode("utf-8")
    if capture.get("probe") is not None:
        parts[PROBE] = (capture["probe"] + "\n").encode("utf-8")
    if capture.get("info") is not None:
        parts[INFO] = (json.dumps(capture["info"], indent=2, sort_keys=True) + "\n").encode("utf-8")
    return parts


def _write_all(directory: str, parts: t.Mapping[str, bytes]) -> None:
    for name, data in parts.items():
        target = os.path.join(directory, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)


def _swap(fresh: str, path: str) -> None:
    """Put a directory in the place of another; only a capture is ever replaced."""
    if os.path.lexists(path):
        if not os.path.isdir(path) or (os.listdir(path) and not os.path.exists(os.path.join(path, NODE))):
            raise RuntimeGateError("The capture %s is not written: something that is no capture is there." % path)
        old = tempfile.mkdtemp(prefix=".capture-", dir=os.path.dirname(fresh))
        os.rename(path, os.path.join(old, "old"))
        os.rename(fresh, path)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(fresh, path)
