# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendered Kubernetes manifests from files and directories, and the output of kubectl get -o json."""

from __future__ import annotations

import json
import os
import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_objects import ClusterObjects

_SUFFIXES = (".yml", ".yaml", ".json")
# 150,000 pods, as many as a cluster may have, are some 1.3 GB as kubectl writes them; a file beyond this is a mistake.
_MAX_BYTES = 4 * 1024 * 1024 * 1024
_MAX_FILES = 20000
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe, at C speed where libyaml is there. A key that stands twice is an error, as it is for kubectl: which of
    two handlers is meant cannot be told."""

    def construct_mapping(self, node: t.Any, deep: bool = False) -> t.Any:
        if isinstance(node, yaml.MappingNode):
            names = [key.value for key, _value in node.value if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge"]
            if len(names) != len(set(names)):
                twice = next(name for index, name in enumerate(names) if name in names[:index])
                raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def read_manifests(paths: t.Iterable[str]) -> ClusterObjects:
    """Every object in these files and directories (with their sub-directories, in the order of their names).

    Raises RuntimeGateError, naming file, document and line, for a path that does not exist, a directory without
    manifests, a file that cannot be read or parsed, an unrendered kustomization or chart, and a document that is
    no Kubernetes object.
    """
    objects = ClusterObjects()
    for path in paths:
        for name in _files(path):
            _read_file(name, objects)
    return objects


def read_kubectl(output: t.Any, what: str) -> ClusterObjects:
    """Every object in an output of kubectl get -o json, the text or what it parses to. what: the thing asked for.

    Raises RuntimeGateError for a text that is no JSON (kubectl's error message, for one) and for other objects."""
    objects = ClusterObjects()
    where = f"the output of kubectl for {what}"
    objects.add(_json(output, where) if isinstance(output, str) else output, where)
    return objects


def _files(path: str) -> list[str]:
    if not os.path.exists(path):
        raise RuntimeGateError(f"the manifests path {path} does not exist")
    if not os.path.isdir(path):
        if os.path.basename(path) in _KUSTOMIZATIONS:
            raise RuntimeGateError(_unrendered(path, "kustomization", f"kubectl kustomize {os.path.dirname(path) or '.'}"))
        return [path]
    found: list[str] = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        _refuse_sources(folder, names)
        found += [os.path.join(folder, name) for name in sorted(names) if _is_manifest(name)]
        if len(found) > _MAX_FILES:
            raise RuntimeGateError(f"the manifests directory {path} has more than {_MAX_FILES} files; name a narrower one")
    if not found:
        raise RuntimeGateError(f"the manifests directory {path} has no file that ends in {', '.join(_SUFFIXES)}")
    return found


def _is_manifest(name: str) -> bool:
    return name.endswith(_SUFFIXES) and not name.startswith(".")


def _refuse_sources(folder: str, names: t.Iterable[str]) -> None:
    """A directory of sources is not what will be applied."""
    for name in names:
        if name in _KUSTOMIZATIONS:
            raise RuntimeGateError(_unrendered(folder, "kustomization", f"kubectl kustomize {folder}"))
        if name == "Chart.yaml":
            raise RuntimeGateError(_unrendered(folder, "Helm chart", f"helm template {folder}"))


def _unrendered(path: str, what: str, command: str) -> str:
    return f"{path} is a {what}, not rendered manifests; render it ({command} > rendered.yaml) and pass the result"


def _read_file(path: str, objects: ClusterObjects) -> None:
    if path.endswith(".json"):
        objects.add(_json(_text(path), path), path)
        return
    for number, line, document in _documents(_text(path), path):
        if document is not None:
            objects.add(document, f"{path}, document {number} (line {line})")


def _text(path: str) -> str:
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise RuntimeGateError(f"{path} is larger than {_MAX_BYTES // 1024 // 1024} MiB, too large for a manifest")
        with open(path, encoding="utf-8-sig") as stream:
            return stream.read()
    except OSError as error:
        raise RuntimeGateError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RuntimeGateError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def _json(text: str, where: str) -> t.Any:
    try:
        return json.loads(text)
    except ValueError as error:
        shown = " ".join(text.split())[:120]
        line = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        raise RuntimeGateError(f"{where} is no JSON{line}: {shown or 'it is empty'}") from error
    except RecursionError as error:
        raise RuntimeGateError(f"{where} is nested too deeply to be a Kubernetes object") from error


def _documents(text: str, path: str) -> t.Iterator[tuple[int, int, t.Any]]:
    """(number of the document, its first line, what it says), one by one."""
    number, line = 0, 1
    loader = None
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            number, line = number + 1, node.start_mark.line + 1
            if _expanded(node, len(text), {}) > len(text):
                raise RuntimeGateError(f"{path}, document {number} (line {line}) repeats itself too often by its aliases; write it out")
            yield number, line, loader.construct_document(node)
    except yaml.YAMLError as error:
        raise RuntimeGateError(_broken(error, text, path, number)) from error
    except (RecursionError, ValueError) as error:
        # A date such as 2024-13-45 is a ValueError of the constructor.
        raise RuntimeGateError(f"{path}, document {number} (line {line}) is no manifest: {error}") from error
    finally:
        if loader is not None:
            loader.dispose()


def _expanded(node: t.Any, limit: int, known: dict[int, int]) -> int:
    """How many nodes a document has with every alias written out. Without aliases they are fewer than its characters; a
    few lines of aliases of aliases can stand for billions."""
    size = known.get(id(node))
    if size is not None:
        return size
    known[id(node)] = limit + 1  # what contains itself is endless
    size = 1
    if isinstance(node, yaml.MappingNode):
        size += sum(_expanded(key, limit, known) + _expanded(value, limit, known) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_expanded(entry, limit, known) for entry in node.value)
    known[id(node)] = size
    return size


def _broken(error: yaml.YAMLError, text: str, path: str, number: int) -> str:
    if "{{" in text:
        return _unrendered(path, "template", "helm template CHART")
    mark = getattr(error, "problem_mark", None)
    line = f" (line {mark.line + 1})" if mark else ""
    # A document that does not parse has not been counted; one that parses but does not construct has.
    which = number if isinstance(error, yaml.constructor.ConstructorError) else number + 1
    problem = getattr(error, "problem", None) or str(error)
    return f"{path}, document {which}{line} is no YAML: {' '.join(str(problem).split())[:200]}"
