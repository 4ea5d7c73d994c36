"""rc-crosscheck on recorded dumps of real daemons, and against a socket that answers as they do."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "roles/gate/files/rc-crosscheck.sh"
CASES = ROOT / "tests/cases"


def capture(case, line):
    (folder,) = CASES.glob(case + "-*")
    return folder / "captures" / line


@pytest.fixture
def check(tmp_path):
    """Runs the script with these handlers asked for; PATH holds only what a test puts there, and the system's tools."""

    def run(*handlers, dump=None, path="", text=None, **environment):
        wanted = tmp_path / "handlers"
        wanted.write_text("".join(handler + "\n" for handler in handlers) if text is None else text)
        known = {"PATH": path + ":/usr/bin:/bin", "RC_HANDLERS_FILE": str(wanted), "TMPDIR": str(tmp_path), **environment}
        known = {name: value for name, value in known.items() if value is not None}
        done = subprocess.run(
            [SCRIPT, *([str(dump)] if dump else [])], env=known, capture_output=True, text=True, timeout=60, check=False
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path.parent)


def test_it_is_committed_executable():
    listed = subprocess.run(["git", "ls-files", "-s", str(SCRIPT)], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout.startswith("100755 ")


@pytest.mark.parametrize(
    "case, line, loaded",
    [
        ("040", "2.1", ["runc"]),
        ("073", "1.7-v2", ["nvidia"]),
        ("073", "2.1-v3", ["nvidia", "runc"]),
        ("104", "2.3", ["runc"]),
        ("076", "2.2", ["crun", "runc"]),
        ("049", "1.6", ["kata", "runc"]),
        ("026", "1.7", ["default", "nvidia"]),
    ],
)
def test_a_dump_has_the_handlers_that_the_daemon_loaded(check, case, line, loaded):
    dump = capture(case, line) / "config-dump.toml"
    assert check(*loaded, dump=dump)[:2] == (0, "OK\n")
    assert check("zebra", *loaded, "aaa", dump=dump)[:2] == (1, "MISSING=aaa\nMISSING=zebra\n")


def test_every_recorded_dump_agrees_with_the_recorded_answer_of_its_daemon(check):
    """But where the case says that dump and daemon differ: a daemon older than its file, and the dump of 2.0."""
    differ = {"039-crlf-file/2.0", "043-dump-is-not-the-loaded-config-2.0/2.0", "100-file-overwritten-daemon-still-good/1.7"}
    compared, different = 0, set()
    for info in sorted(CASES.glob("*/captures/*/crictl-info.json")):
        config = json.loads(info.read_text()).get("config", {})
        dump = info.parent / "config-dump.toml"
        if "containerd" not in config or not dump.exists() or not dump.stat().st_size:
            continue
        loaded = set(config["containerd"]["runtimes"])
        asked = sorted(loaded | {"nvidia", "kata", "runsc", "crun", "runc"})
        status, printed, _error = check(*asked, dump=dump)
        expected = "".join("MISSING=%s\n" % name for name in asked if name not in loaded) or "OK\n"
        if (status, printed) != (int(expected != "OK\n"), expected):
            different.add("%s/%s" % (info.parents[2].name, info.parent.name))
        compared += 1
    assert different == differ
    assert compared > 80


@pytest.mark.parametrize("line", ["1.7", "2.1"])
def test_a_dump_whose_cri_cannot_start_is_never_ok(check, line):
    """Docker's package disables CRI: the dump of 2.1 lists runc as if it were on."""
    status, printed, error = check("runc", dump=capture("021", line) / "config-dump.toml")
    assert (status, printed) == (1, "MISSING=runc\n")
    assert error


def test_a_dump_whose_default_is_no_handler_is_never_ok(check):
    dump = capture("019", "1.7") / "config-dump.toml"
    assert "runtimes.kata" in dump.read_text()
    assert check("kata", dump=dump)[:2] == (1, "MISSING=kata\n")


UNMIGRATED = """
version = {version}
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = 'runc'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.grpc.v1.cri'.containerd]
default_runtime_name = 'nvidia'
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.nvidia]
runtime_type = 'io.containerd.runc.v2'
"""


@pytest.mark.parametrize("version", [2, 3])
def test_where_the_new_plugin_name_stands_the_old_one_counts_for_nothing(check, tmp_path, version):
    dump = tmp_path / "dump.toml"
    dump.write_text(UNMIGRATED.format(version=version))
    assert check("nvidia", "runc", dump=dump)[:2] == (1, "MISSING=nvidia\n")


def test_an_old_name_under_version_3_counts_for_nothing(check, tmp_path):
    dump = tmp_path / "dump.toml"
    dump.write_text("version = 3\n" + UNMIGRATED.partition("[plugins.'io.containerd.grpc")[2].join(["[plugins.'io.containerd.grpc", ""]))
    assert check("nvidia", dump=dump)[:2] == (1, "MISSING=nvidia\n")


@pytest.mark.parametrize("text", ["runc\n\n  \nrunc\r\n", "runc", "\n runc \n"])
def test_the_list_may_have_blank_lines_repetitions_and_foreign_line_ends(check, text):
    assert check(text=text, dump=capture("070", "2.1") / "config-dump.toml")[:2] == (0, "OK\n")


@pytest.mark.parametrize("text", ["", "\n  \n", "# to be filled in\n"])
def test_a_list_without_a_handler_checks_nothing(check, text):
    status, printed, error = check(text=text, dump=capture("070", "2.1") / "config-dump.toml")
    assert (status, printed) == (2, "") and "handlers names no handler, so nothing can be checked" in error


def test_a_cluster_without_a_class_is_ok_where_the_dump_is_good(check, tmp_path):
    path = executable(tmp_path / "bin" / "kubectl", "exit 0\n")
    for case, expected in (("070", (0, "OK\n")), ("021", (2, ""))):
        assert check(dump=capture(case, "2.1") / "config-dump.toml", path=path, RC_HANDLERS_FILE=None)[:2] == expected


@pytest.mark.parametrize(
    "content", [b"", b"  \n", b"not toml [", b"\xff\xfe[plugins]", b"version = 2\n", b"version = 'x'\n[plugins]\n", b"[plugins]\n" * 2]
)
def test_what_is_no_dump_is_an_error(check, tmp_path, content):
    dump = tmp_path / "dump.toml"
    dump.write_bytes(content)
    status, printed, error = check("runc", dump=dump)
    assert (status, printed) == (2, "") and error.startswith("rc-crosscheck: ")


def test_what_is_not_there_is_an_error(check, tmp_path):
    good = capture("070", "2.1") / "config-dump.toml"
    assert check("runc", dump=tmp_path / "none")[:2] == (2, "")
    assert check("runc", dump=tmp_path)[:2] == (2, "")
    assert check(dump=good, RC_HANDLERS_FILE=str(tmp_path / "none"))[:2] == (2, "")
    assert check("runc", path="")[:2] == (2, "")  # no containerd on PATH
    done = subprocess.run([SCRIPT, str(good), str(good)], capture_output=True, text=True, check=False)
    assert done.returncode == 2


def test_kubectl_gives_the_handlers_by_the_documented_call(check, tmp_path):
    asked = r"""[ "$*" = "get runtimeclass -o jsonpath={range .items[*]}{.handler}{\"\\n\"}{end}" ] || exit 9; printf 'runc\nnvidia\n'"""
    path = executable(tmp_path / "bin" / "kubectl", asked)
    done = check(dump=capture("070", "2.1") / "config-dump.toml", path=path, RC_HANDLERS_FILE=None)
    assert done[:2] == (1, "MISSING=nvidia\n")


def test_a_line_of_the_file_that_starts_with_a_hash_is_a_comment(check, tmp_path):
    (tmp_path / "named").write_text("# what the classes ask for\nrunc\n  # nvidia\n#kata\n")
    good = capture("070", "2.1") / "config-dump.toml"
    assert check(dump=good, RC_HANDLERS_FILE=str(tmp_path / "named"))[:2] == (0, "OK\n")


def test_a_failing_or_absent_kubectl_is_an_error(check, tmp_path):
    good = capture("070", "2.1") / "config-dump.toml"
    path = executable(tmp_path / "bin" / "kubectl", "echo runc; echo 'connection refused' >&2; exit 1")
    status, printed, error = check(dump=good, path=path, RC_HANDLERS_FILE=None)
    assert (status, printed) == (2, "") and "connection refused" in error
    assert error.rstrip().endswith("or give RC_HANDLERS_FILE=/path")
    assert check(dump=good, RC_HANDLERS_FILE=None)[:2] == (2, "")


def tools_without_python(folder):
    """A PATH that has what the script calls, and no Python but a stub."""
    for name in ("sh", "cat", "rm", "mktemp"):
        (folder / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
    return folder


def test_without_a_toml_parser_there_is_no_answer(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    tools_without_python(folder)
    # Python 3.10 and older on a machine where nobody installed tomli: the check for a parser fails.
    executable(folder / "python3", "exit 1")
    wanted = tmp_path / "handlers"
    wanted.write_text("runc\n")
    script = tmp_path / "rc.sh"
    script.write_text(SCRIPT.read_text().replace("/usr/bin/python3 /usr/libexec/platform-python", ""))
    done = subprocess.run(
        ["/bin/sh", str(script), str(capture("070", "2.1") / "config-dump.toml")],
        env={"PATH": str(folder), "RC_HANDLERS_FILE": str(wanted), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "") and "no TOML parser" in done.stderr


class Daemon(threading.Thread):
    """A socket that answers Status as containerd does: with a message, without one, or not at all."""

    def __init__(self, path, message):
        super().__init__(daemon=True)
        self.message = message
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(4)

    def run(self):
        while True:
            try:
                connection, _address = self.server.accept()
            except OSError:
                return
            with connection:
                self.answer(connection)

    def answer(self, connection):
        stream = connection.makefile("rb")
        assert stream.read(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        while True:
            head = stream.read(9)
            stream.read(struct.unpack(">I", b"\x00" + head[:3])[0])
            if head[3] == 0 and head[4] & 1:
                break
        if self.message is not None:
            connection.sendall(self.frames())
        stream.read()  # until the client has read it all and goes

    def frames(self):
        frames = frame(4, 0, 0, b"") + frame(6, 0, 0, b"12345678")
        if self.message:
            body = b"\x00" + struct.pack(">I", len(self.message)) + self.message
            parts = [body[start : start + 16000] for start in range(0, len(body), 16000)]
            frames += frame(1, 4, 1, b"\x88") + b"".join(frame(0, 0, 1, part) for part in parts)
        return frames + frame(1, 5, 1, b"\x88")


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def field(number, payload):
    size, length = len(payload), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + payload


def status_message(info):
    """A StatusResponse whose info has this configuration, behind a field that must be passed over."""
    config = json.dumps(info["config"]).encode()
    other = field(2, field(1, b"golang") + field(2, b'"go1.26"'))
    return field(1, b"\x0a\x00") + other + field(2, field(1, b"config") + field(2, config))


@pytest.fixture
def node(tmp_path, check):
    """A node whose containerd prints this dump and whose socket answers this message (False: no socket)."""

    def make(dump, message, version="2.1.9", migrated=None):
        address = tmp_path / "containerd.sock"
        text = dump.read_text().replace("/run/containerd/containerd.sock'", "%s'" % address)
        text = text.replace('/run/containerd/containerd.sock"', '%s"' % address)
        (tmp_path / "dump").write_text(text)
        if migrated:
            (tmp_path / "migrated").write_text(migrated.read_text().replace("/run/containerd/containerd.sock'", "%s'" % address))
        path = executable(
            tmp_path / "bin" / "containerd",
            'case "$*" in --version) echo "containerd github.com/containerd/containerd/v2 %s" ;; "config dump") cat "%s" ;;'
            ' "config migrate") cat "%s" ;; *) exit 64 ;; esac' % (version, tmp_path / "dump", tmp_path / "migrated"),
        )
        if message is not False:
            Daemon(address, message).start()
        return path

    return make


def test_a_live_node_that_loaded_its_dump_is_ok(check, node):
    recorded = capture("073", "2.1-v3")
    message = status_message(json.loads((recorded / "crictl-info.json").read_text()))
    path = node(recorded / "config-dump.toml", message)
    assert check("nvidia", "runc", path=path)[:2] == (0, "OK\n")
    assert check("nvidia", "kata", path=path)[:2] == (1, "MISSING=kata\n")


def test_what_is_in_the_dump_and_not_loaded_is_missing(check, node):
    message = status_message(json.loads((capture("070", "2.1") / "crictl-info.json").read_text()))
    path = node(capture("073", "2.1-v3") / "config-dump.toml", message)
    status, printed, error = check("nvidia", "runc", path=path)
    assert (status, printed) == (1, "MISSING=nvidia\n") and "in the dump and not loaded" in error


def test_what_is_loaded_and_lost_at_the_next_restart_is_missing(check, node):
    recorded = capture("100", "1.7")
    message = status_message(json.loads((recorded / "crictl-info.json").read_text()))
    status, printed, error = check("nvidia", "runc", path=node(recorded / "config-dump.toml", message, version="1.7.24"))
    assert (status, printed) == (1, "MISSING=nvidia\n") and "the next restart loses it" in error


def test_2_0_is_judged_by_its_migrated_configuration(check, node):
    """Its dump does not have what the daemon migrates and loads (case 043)."""
    recorded = capture("043", "2.0")
    message = status_message(json.loads((recorded / "crictl-info.json").read_text()))
    path = node(recorded / "config-dump.toml", message, version="2.0.7", migrated=capture("043", "2.1") / "config-dump.toml")
    assert check("nvidia", "runc", path=path)[:2] == (0, "OK\n")


@pytest.mark.parametrize("message, why", [(b"", "does not serve CRI"), (False, "nobody listens")])
def test_a_dead_cri_is_never_ok_however_good_the_dump_looks(check, node, message, why):
    path = node(capture("070", "2.1") / "config-dump.toml", message)
    status, printed, error = check("runc", path=path)
    assert (status, printed) == (1, "MISSING=runc\n") and why in error
    assert check(path=path)[:2] == (2, "")  # nothing was asked for: that is no OK either


def test_a_daemon_that_does_not_answer_is_an_error(check, node):
    status, printed, error = check("runc", path=node(capture("070", "2.1") / "config-dump.toml", None), RC_TIMEOUT="0.5")
    assert (status, printed) == (2, "") and "did not answer" in error


@pytest.mark.parametrize("message", [b"\x0a", b"\x12\x7f", field(2, field(1, b"config") + field(2, b"{")), field(2, field(1, b"golang") + field(2, b"{}"))])
def test_an_answer_that_makes_no_sense_is_an_error(check, node, message):
    status, printed, _error = check("runc", path=node(capture("070", "2.1") / "config-dump.toml", message))
    assert (status, printed) == (2, "")


def test_a_containerd_that_cannot_print_its_dump_is_an_error(check, tmp_path):
    path = executable(tmp_path / "bin" / "containerd", "echo 'containerd: invalid plugin key' >&2; exit 1")
    status, printed, error = check("runc", path=path)
    assert (status, printed) == (2, "") and "invalid plugin key" in error


def test_it_leaves_nothing_behind(check, tmp_path):
    check("runc", dump=capture("070", "2.1") / "config-dump.toml")
    assert [name for name in os.listdir(tmp_path) if name.startswith("tmp.")] == []
