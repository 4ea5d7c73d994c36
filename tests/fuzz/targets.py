"""The parsers that touch foreign bytes: how an input is made, what is called with it, and which errors are allowed.

What this proves: nothing by itself. An error that is not named here is a finding; so is what takes too long or too much memory
(__main__.py). Inputs are made from a seed and a number alone, so that a finding can be repeated.
"""

from __future__ import annotations

import atexit
import functools
import json
import pathlib
import random
import shutil
import socket
import tempfile
import threading
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import admission, documents, go_glob, node_affinity, policy, quantity, scheduling
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import command_line
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import documents as crio_documents
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import release_lines as crio_lines
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.interpret import interpret as interpret_crio
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret, interpret_dump
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import cri, crio, discovery, files, grpc_unary, hpack, kubelet, processes, secrets
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import manifests
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import read_capture
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import judge
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import desired
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.plan import make_plan
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports import drift
from tests.fuzz import corpus, mutate

Errors = tuple[type[BaseException], ...]
_VERSIONS = ("1.4.13", "1.6.20", "1.7.24", "2.0.11", "2.1.9", "2.2.7", "2.3.4", "2.4.0")


class Target(t.NamedTuple):
    """One parser. make: an input from a random.Random; run: the call; allowed: the errors that it may raise."""

    make: t.Callable[[random.Random], t.Any]
    run: t.Callable[[t.Any], t.Any]
    allowed: Errors = ()


# inputs ------------------------------------------------------------------------------------------------------------------------------


def _toml(rng: random.Random) -> str:
    return mutate.text(rng, rng.choice(corpus.tomls()), corpus.tomls())


def _crio_toml(rng: random.Random) -> str:
    return mutate.text(rng, rng.choice(corpus.crio_tomls()), corpus.crio_tomls())


def _bytes_of_toml(rng: random.Random) -> bytes:
    return mutate.raw(rng, rng.choice(corpus.tomls()).encode("utf-8", "surrogateescape"))


def _status(rng: random.Random) -> bytes:
    return mutate.raw(rng, rng.choice(corpus.status_messages()), corpus.status_messages())


def _http2(rng: random.Random) -> bytes:
    return mutate.raw(rng, rng.choice(corpus.http2_answers()), corpus.http2_answers())


def _header_block(rng: random.Random) -> bytes:
    headers = [(":status", "200"), ("grpc-status", rng.choice(("0", "12", "x"))), ("grpc-message", "a%20b")]
    # The caller takes no longer block than this (grpc_unary).
    return mutate.raw(rng, hpack.encode(headers) + bytes(rng.randrange(256) for _byte in range(rng.randint(0, 30))))[: grpc_unary._MAX_HEADERS]


def _info(rng: random.Random) -> t.Any:
    return mutate.tree(rng, rng.choice(corpus.infos()))


def _object(rng: random.Random) -> t.Any:
    return mutate.tree(rng, rng.choice(corpus.objects()))


def _manifest(rng: random.Random) -> tuple[str, bytes]:
    if rng.random() < 0.3:
        return "x.json", mutate.raw(rng, json.dumps(rng.choice(corpus.objects())).encode())
    return "x.yaml", mutate.raw(rng, rng.choice(corpus.manifests()).encode("utf-8", "surrogateescape"))


def _quantity(rng: random.Random) -> t.Any:
    samples = ("250m", "1.5Gi", "-0.000001", "2e3", "128Mi", "1E", "9999999999Ei", ".5", "1n")
    return mutate.tree(rng, rng.choice((mutate.text(rng, rng.choice(samples)), 5, 0.1, 10**30, None)))


_CRIO_COMMANDS = (
    "/usr/bin/crio --config /etc/crio/crio.conf --config-dir=/etc/crio/crio.conf.d --runtimes kata:/usr/bin/kata:/run/kata:vm --default-runtime kata",
    "crio -c '' -d /x --runtimes=a:b:c,d:e:f --log-level 'a b' --conmon \"/usr/bin/conmon\"",
)
_UNIT = (
    "Id=crio.service\nLoadState=loaded\nActiveState=active\nFragmentPath=/usr/lib/systemd/system/crio.service\nDropInPaths=/etc/a.conf /etc/b.conf\n"
    "ExecStart={ path=/usr/bin/crio ; argv[]=/usr/bin/crio $CRIO_CONFIG_OPTIONS ; ignore_errors=no ; pid=1 ; code=(null) ; status=0/0 }\n"
    "EnvironmentFiles=/etc/sysconfig/crio (ignore_errors=yes)\nEnvironment=A=b \"C=d e\"\nKillMode=process\nNeedDaemonReload=no\n"
)
_ENVIRONMENT = "# a\nCRIO_CONFIG_OPTIONS=\"--runtimes kata:/usr/bin/kata:/run:vm\"\nexport A='b'\nCONTAINER_RUNTIMES=a:b:c\n"
_JOURNAL = (
    '1764000000.123456 node crio[1]: time="2026-01-01 00:00:00.000000000Z" level=info msg="Starting CRI-O"\n'
    "1764000001.123456 node crio[1]: Configuration reload completed\n1764000002.1 node crio[1]: Unable to reload configuration: x\n"
)
_KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\ncontainerRuntimeEndpoint: unix:///run/x.sock # y\n"


def _command(rng: random.Random) -> t.Any:
    made = mutate.text(rng, rng.choice(_CRIO_COMMANDS))
    environment = {"CONTAINER_RUNTIMES": mutate.text(rng, "a:b:c,d:e:f"), "CONTAINER_CONFIG": 5}
    return (made if rng.random() < 0.5 else made.split()), environment


def _unit(rng: random.Random) -> tuple[str, str, str]:
    return mutate.text(rng, _UNIT), mutate.text(rng, _ENVIRONMENT), mutate.text(rng, _JOURNAL)


_VERDICT = {"node": "a", "runtime_class": "kata", "handler": "kata", "verdict": "ok", "pending": False, "after_restart": "ok", "fails": False}
_HOST: dict[str, t.Any] = {
    "host": "a",
    "node": "a",
    "unreachable": False,
    "engine": "containerd",
    "version": "2.1.9",
    "evidence": "loaded",
    "handlers": ["runc", "kata"],
    "default_handler": "runc",
    "cells": {"kata": "ok"},
    "changed_at_restart": ["kata"],
    "verdicts": [_VERDICT],
}
_REPORT: dict[str, t.Any] = {"schema": 1, "generated_at": "2026-01-01T00:00:00Z", "hosts": [_HOST]}


def _report(rng: random.Random) -> bytes:
    if rng.random() < 0.6:
        return json.dumps(mutate.tree(rng, _REPORT)).encode("utf-8", "surrogatepass")
    return mutate.raw(rng, json.dumps(_REPORT).encode())


def _glob(rng: random.Random) -> tuple[str, list[str]]:
    paths = ["/etc/containerd/conf.d/10-a.toml", "/etc/containerd/conf.d", "/etc/containerd/b", "/etc/\ud800", mutate.text(rng, "/etc/c")[:300]]
    return mutate.text(rng, rng.choice(("/etc/containerd/conf.d/*.toml", "/e*/[a-z]*/[^x]?\\*", "*")))[:3000], paths


def _declaration(rng: random.Random) -> t.Any:
    options = {
        "handlers": {
            "nvidia": {"preset": "nvidia"},
            "mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/x", "SystemdCgroup": True}, "pod_annotations": ["a"]},
            "old": {"state": "absent"},
        },
        "default_handler": "mine",
    }
    return mutate.tree(rng, options)


def _capture(rng: random.Random) -> tuple[pathlib.Path, str, bytes]:
    """A capture directory, and the damaged bytes of one of its files."""
    directory = rng.choice(corpus.captures())
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    path = rng.choice([path for path in paths if path.stat().st_size < 100_000])
    return directory, str(path.relative_to(directory)), mutate.raw(rng, path.read_bytes())


def _damaged_node(rng: random.Random) -> tuple[dict[str, str], str]:
    """Files of a containerd node with one damaged, and a version."""
    first, second = _toml(rng), rng.choice(corpus.tomls())
    return {"/etc/containerd/config.toml": first, "/etc/containerd/conf.d/a.toml": second}, rng.choice(_VERSIONS)


# calls -------------------------------------------------------------------------------------------------------------------------------


def _mask(text: str) -> None:
    masker = secrets.Masker()
    masker.toml(text)


def _mask_words(text: str) -> None:
    masker = secrets.Masker()
    masker.text(text)
    masker.command_line(text)
    masker.command(text.split())


def _put_back(text: str) -> None:
    secrets.Masker().put_back(text, corpus.tomls()[0])


def _document(text: str) -> None:
    for kind in (documents.Document, crio_documents.CrioDocument):
        document = kind("/etc/x", text)
        _ = document.declarations, document.default_names(), document.stated_version, document.line_of(("plugins", "cri"))


def _decode(data: bytes) -> None:
    text, _reason = files.decode_configuration(data)
    files.decode(data)
    files.import_patterns(text)
    documents.Document("/etc/x", text, _reason)


def _protobuf(data: bytes) -> None:
    cri.decode_status(data)


def _version(data: bytes) -> None:
    cri.decode_version(data)


@functools.cache
def _socket() -> tuple[str, list[bytes]]:
    """A unix socket that answers each connection with the bytes in the list, whatever is asked."""
    folder = tempfile.mkdtemp(prefix="runtime-gate-fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder + "/s"
    answer: list[bytes] = [b""]
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(8)

    def serve() -> None:
        while True:
            connection, _peer = server.accept()
            with connection:
                try:
                    connection.recv(65536)
                    connection.sendall(answer[0])
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(1)
                    while connection.recv(65536):
                        pass
                except OSError:
                    continue  # the client has seen enough

    threading.Thread(target=serve, daemon=True).start()
    return path, answer


def _over_the_socket(data: bytes) -> None:
    path, answer = _socket()
    answer[0] = data
    cri.ask(path, 2)


def _hpack(data: bytes) -> None:
    decoder = hpack.Decoder()
    decoder.decode(data)
    decoder.decode(data)


def _huffman(data: bytes) -> None:
    hpack.huffman_decode(data)


def _of_info(info: t.Any) -> None:
    """What the collector does with the JSON of crictl, and the cores with what it brings."""
    if not (isinstance(info, dict) and isinstance(info.get("status"), dict)):
        return
    info = json.loads(json.dumps(info))
    masked = secrets.Masker().json(info)
    node = {"engine": "containerd", "version": "2.1.9", "cri_state": "served", "config_path": "/etc/containerd/config.toml", "binaries": {}}
    text = 'version = 3\n[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.kata]\nruntime_type = "io.containerd.kata.v2"\n'
    json.dumps(interpret({"format": 1, "node": node, "files": {"/etc/containerd/config.toml": text}, "dump": None, "info": masked}))
    of_crio = dict(node, engine="crio", version="1.36.3", config_path="/etc/crio/crio.conf", config_dir="/etc/crio/crio.conf.d")
    json.dumps(interpret_crio({"format": 1, "node": of_crio, "files": {}, "dump": None, "info": masked, "status_config": None, "probe": None}))


def _of_crio(texts: tuple[str, str, str]) -> None:
    """A file, the daemon's own configuration and its answer about a handler that cannot exist."""
    node = {"engine": "crio", "version": "1.36.3", "cri_state": "served", "config_path": "/etc/crio/crio.conf", "config_dir": "/etc/crio/crio.conf.d"}
    capture = {"format": 1, "node": node, "files": {"/etc/crio/crio.conf": texts[0]}, "dump": None, "info": corpus.infos()[0]}
    json.dumps(interpret_crio({**capture, "status_config": texts[1], "probe": texts[2]}))


def _crio_texts(rng: random.Random) -> tuple[str, str, str]:
    probe = 'rpc error: code = Unknown desc = failed to find runtime handler x from runtime list map[crun:0xc000 kata:0xc001 runc:0xc002]"'
    return _crio_toml(rng), _crio_toml(rng), mutate.text(rng, probe)


def _of_files(made: tuple[dict[str, str], str]) -> None:
    texts, version = made
    node = {"engine": "containerd", "version": version, "cri_state": "not_running", "config_path": "/etc/containerd/config.toml"}
    capture = {"format": 1, "node": node, "files": texts, "dump": {"stdout": texts["/etc/containerd/config.toml"], "stderr": "", "rc": 0}, "info": None}
    facts = interpret(capture)
    json.dumps(facts)
    for fault in facts["faults"]:
        try:
            apply_edits(texts, fault["fix_edits"])
        except RuntimeGateError:
            continue  # a file that cannot be edited is said to be so
    make_plan(capture, facts, {"handlers": {"nvidia": {"preset": "nvidia"}}, "repair": True, "allow_absent_binary": True})


def _of_capture(made: tuple[pathlib.Path, str, bytes]) -> None:
    directory, name, data = made
    with tempfile.TemporaryDirectory(prefix="runtime-gate-fuzz-") as folder:
        copy = pathlib.Path(folder) / "capture"
        shutil.copytree(directory, copy)
        (copy / name).write_bytes(data)
        capture = read_capture(str(copy))
    core = interpret_crio if capture["node"].get("engine") == "crio" else interpret
    json.dumps(core(capture))


def _of_manifest(made: tuple[str, bytes]) -> None:
    name, data = made
    with tempfile.TemporaryDirectory(prefix="runtime-gate-fuzz-") as folder:
        path = pathlib.Path(folder) / name
        path.write_bytes(data)
        manifests.read_manifests([str(path)])
        judge({"manifests": [str(path)], "policy": {}, "verdicts": "all"})


def _of_kubectl(value: t.Any) -> None:
    manifests.read_kubectl(value, "nodes")
    manifests.read_kubectl(json.dumps(value), "nodes")


def _of_objects(value: t.Any) -> None:
    """Labels, selectors, taints, tolerations and affinities, wherever they stand in an object."""
    value = value if isinstance(value, dict) else {"spec": value}
    spec = value.get("spec") if isinstance(value.get("spec"), dict) else value
    scheduled = value.get("scheduling") if isinstance(value.get("scheduling"), dict) else spec
    for call in (
        lambda: scheduling.parse_selector(scheduled.get("nodeSelector"), "x"),
        lambda: scheduling.parse_tolerations(scheduled.get("tolerations"), "x"),
        lambda: scheduling.parse_taints(spec.get("taints"), "x"),
        lambda: scheduling.check_handler(value.get("handler"), "x"),
        lambda: node_affinity.affinity_matches(spec, {"a": "5"}, "n", "x"),
        lambda: admission.admit(value, value),
        lambda: admission.admit({"spec": spec}, {"handler": "kata", "scheduling": spec, "overhead": value.get("overhead")}),
        lambda: policy.parse_policy(value),
        lambda: quantity.parse_quantity(spec.get("cpu"), "x"),
    ):
        try:
            call()
        except RuntimeGateError:
            continue


def _pod(rng: random.Random) -> t.Any:
    terms = [{"matchExpressions": [{"key": "a", "operator": rng.choice(("In", "NotIn", "Gt", "Lt", "Exists")), "values": ["5"]}], "matchFields": []}]
    spec = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        "cpu": "250m",
    }
    policy_of = {"default": "require", "classes": {"kata": {"nodes": "all"}}, "ignore": ["runc"]}
    return mutate.tree(rng, {"spec": spec, "handler": "kata", "scheduling": spec, **policy_of})


def _of_command(made: tuple[t.Any, dict[str, t.Any]]) -> None:
    command, environment = made
    found = command_line.overrides(command, environment)
    for version in ("1.20.0", "1.30.0", "1.36.3"):
        for value in found.runtimes:
            command_line.runtime_entry(value, crio_lines.rules_for(version))
    words = command.split() if isinstance(command, str) else command
    processes.option(words, "config", "c")
    crio.wanted([], {}, words)


def _of_unit(made: tuple[str, str, str]) -> None:
    unit, environment, journal = made
    told = discovery.parse_unit(unit)
    if told:
        crio.next_start(told, {"/etc/sysconfig/crio": environment})
    crio.read_journal(journal)


def _of_kubelet(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="runtime-gate-fuzz-") as root:
        (pathlib.Path(root) / "config.yaml").write_bytes(data)
        kubelet.describe(1, ["kubelet", "--config", "/config.yaml", "--kubeconfig=/config.yaml"], {}, root)


def _of_report(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="runtime-gate-fuzz-") as folder:
        path = pathlib.Path(folder) / "report.json"
        path.write_bytes(data)
        before = drift.read_report(str(path), 1)
    json.dumps(drift.drift(before, _REPORT))


def _of_glob(made: tuple[str, list[str]]) -> None:
    go_glob.glob(*made)


TARGETS: dict[str, Target] = {
    "toml-scan": Target(_toml, toml_spans.scan, (toml_spans.TomlScanError,)),
    "toml-mask": Target(_toml, _mask, (secrets.Withheld,)),
    "toml-put-back": Target(_toml, _put_back, (secrets.Withheld,)),
    "toml-document": Target(_toml, _document),
    "toml-bytes": Target(_bytes_of_toml, _decode),
    "text-mask": Target(_toml, _mask_words),
    "config-dump": Target(_toml, interpret_dump, (RuntimeGateError,)),
    "containerd-files": Target(_damaged_node, _of_files, (RuntimeGateError,)),
    "crio-answers": Target(_crio_texts, _of_crio, (RuntimeGateError,)),
    "crio-command-line": Target(_command, _of_command),
    "crio-unit-and-journal": Target(_unit, _of_unit),
    "cri-status": Target(_status, _protobuf, (cri.NotProtobuf,)),
    "cri-version": Target(_status, _version, (cri.NotProtobuf,)),
    "cri-socket": Target(_http2, _over_the_socket, (grpc_unary.GrpcStatus, grpc_unary.NoAnswer, cri.NotProtobuf)),
    "hpack": Target(_header_block, _hpack, (hpack.HpackError,)),
    "huffman": Target(_header_block, _huffman, (hpack.HpackError,)),
    "crictl-json": Target(_info, _of_info, (RuntimeGateError,)),
    "capture": Target(_capture, _of_capture, (RuntimeGateError,)),
    "manifests": Target(_manifest, _of_manifest, (RuntimeGateError,)),
    "kubectl-json": Target(_object, _of_kubectl, (RuntimeGateError,)),
    "selectors": Target(_pod, _of_objects),
    "quantity": Target(_quantity, lambda raw: quantity.parse_quantity(raw, "x"), (RuntimeGateError,)),
    "kubelet-config": Target(lambda rng: mutate.raw(rng, _KUBELET.encode()), _of_kubelet),
    "previous-report": Target(_report, _of_report, (RuntimeGateError,)),
    "declaration": Target(_declaration, lambda options: desired.parse(options if isinstance(options, dict) else {}), (RuntimeGateError,)),
    "import-glob": Target(_glob, _of_glob, (go_glob.GlobSyntaxError,)),
}


def make(name: str, seed: int, number: int) -> t.Any:
    """The input that these three name."""
    return TARGETS[name].make(random.Random(f"fuzz/{name}/{seed}/{number}"))
