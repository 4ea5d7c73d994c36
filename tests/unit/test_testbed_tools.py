"""The pure parts of the test bed's tools: the archive is told from other repositories, a cache key covers what decides the content."""

from __future__ import annotations

import dataclasses
import re

import pytest

from tests.testbed import tools

DEB822 = """\
# a comment
Types: deb
URIs: https://packages.vendor.example/apt
Suites: stable
Components: main

Types: deb deb-src
URIs: http://archive.example/debian http://second.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/archive.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb
URIs: http://other.example/debian
Suites: bookworm
Components: non-free
"""

LIST = """\
# deb http://commented.example/debian bookworm main
deb-src http://source.example/debian bookworm main
deb [arch=amd64 signed-by=/etc/keys/a.gpg] http://archive.example/debian bookworm main contrib
deb http://plain.example/debian/ bookworm main
"""


@pytest.mark.parametrize(
    ("text", "deb822", "expected"),
    [
        (
            DEB822,
            True,
            [
                ("https://packages.vendor.example/apt", ""),
                ("http://archive.example/debian", "/usr/share/keyrings/archive.gpg"),
                ("http://second.example/debian", "/usr/share/keyrings/archive.gpg"),
            ],
        ),
        (LIST, False, [("http://archive.example/debian", "/etc/keys/a.gpg"), ("http://plain.example/debian/", "")]),
        ("", True, []),
        ("", False, []),
    ],
)
def test_parse_sources(text: str, deb822: bool, expected: list[tuple[str, str]]) -> None:
    """Both formats of apt's source files, with and without a keyring."""
    assert tools.parse_sources(text, deb822) == expected


def test_the_archive_is_the_one_that_ends_in_debian(monkeypatch: pytest.MonkeyPatch, tmp_path: tools.pathlib.Path) -> None:
    """Other vendors' repositories are passed over; without an archive there is one clear error."""
    (tmp_path / "a.sources").write_text(DEB822)
    monkeypatch.setattr(tools, "_apt_files", lambda: [str(tmp_path / "a.sources")])
    assert tools.debian_source() == ("http://archive.example/debian", "/usr/share/keyrings/archive.gpg")
    monkeypatch.setattr(tools, "_apt_files", list)
    with pytest.raises(tools.ToolError, match="no Debian archive among this machine's apt sources"):
        tools.debian_source()


def test_a_pin_that_changes_makes_another_cache_entry() -> None:
    """Version, checksum and suite of a package, and its wrapper, decide the key."""
    spec = tools.TOOLS["containerd-2.1"]
    assert isinstance(spec, tools.DebianTool)
    package = spec.packages[0]
    others = [
        dataclasses.replace(spec, suite="sid"),
        dataclasses.replace(spec, wrapper="#!/bin/sh"),
        dataclasses.replace(spec, packages=(dataclasses.replace(package, sha256="0" * 64),)),
        dataclasses.replace(spec, packages=(dataclasses.replace(package, version="9"),)),
    ]
    assert len({spec.checksum(), *(other.checksum() for other in others)}) == 5


@pytest.mark.parametrize("line", ["2.0", "2.2", "2.3", "2.3.4", "2.4"])
def test_containerd_from_the_proxy_is_of_its_line(line: str) -> None:
    """The module file pins a version of the line, and the linker stamps the program with it."""
    spec = tools.TOOLS[f"containerd-{line}"]
    assert isinstance(spec, tools.GoTool)
    assert re.fullmatch(rf"v{re.escape(line)}(\.\d+)?", spec.version())
    assert f"version.Version={spec.version()}" in spec.flags()


def test_module_files_are_pinned_whole() -> None:
    """Each family has go.mod and go.sum, and no requirement floats."""
    for spec in tools.TOOLS.values():
        if isinstance(spec, tools.GoTool):
            assert (spec.directory / "go.sum").stat().st_size > 0
            assert "latest" not in (spec.directory / "go.mod").read_text()


def test_unknown_tool() -> None:
    """One clear sentence with the names that there are."""
    with pytest.raises(tools.ToolError, match="no such tool: podman .*containerd-2.4"):
        tools.tool("podman")


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command the usage is printed and the exit code is 2."""
    assert tools.main([]) == 2
    assert "fetch" in capsys.readouterr().err


def test_a_pin_that_the_archive_has_dropped_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, tmp_path: tools.pathlib.Path) -> None:
    """After the lists were read again the package is still unknown: the sentence names package, version, suite and what to do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tools, "_apt_options", lambda _suite: [])
    monkeypatch.setattr(tools, "_apt_knows", lambda _options, _package: False)
    monkeypatch.setattr(tools, "_run", lambda _command, **_options: "")
    with pytest.raises(tools.ToolError, match=r"no longer serves containerd 1\.6\.20\S+ in bookworm; pin the version it serves now"):
        tools.tool("containerd-1.6")
    assert not list((tmp_path / "runtime_gate" / "containerd-1.6").iterdir())


def test_a_cached_program_is_not_built_again(monkeypatch: pytest.MonkeyPatch, tmp_path: tools.pathlib.Path) -> None:
    """What lies in the cache is handed out without a build."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = tools.entry("containerd-1.6") / "root/usr/bin/containerd"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(tools, "_build_debian", lambda *_arguments: pytest.fail("built again"))
    assert tools.tool("containerd-1.6") == program


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: tools.pathlib.Path) -> tools.pathlib.Path:
    """A directory for programs, which is all of PATH; nothing is cached and nothing can be built."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("RUNTIME_GATE_TOOLS", raising=False)
    monkeypatch.setattr(tools, "_cached", lambda *_arguments: tools.pathlib.Path("built"))
    monkeypatch.setattr(tools, "_go_version", lambda: "go")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def program_that_says(directory: tools.pathlib.Path, name: str, text: str, status: int = 0) -> tools.pathlib.Path:
    """A program that prints this, whatever it is asked."""
    path = directory / name
    path.write_text(f"#!/bin/sh\necho '{text}'\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("name", "text", "status", "used"),
    [
        ("kube-apiserver", "Kubernetes v1.36.0", 0, True),
        ("kube-apiserver", "Kubernetes v1.35.2", 0, False),
        ("kubectl", "Client Version: v1.36.9", 0, True),
        ("kubectl", "Client Version: v1.3.6", 0, False),
        ("kubectl", "Client Version: v1.36.9", 1, False),
        ("etcd", "etcd Version: 3.6.99", 0, True),
        ("etcd", "etcd Version: 3.4.23", 0, False),
        ("kwok", "kwok version v0.8.7 go1.26 (linux/amd64)", 0, True),
        ("kubelet", "no version at all", 0, False),
    ],
)
def test_a_program_on_path_is_used_in_the_pinned_minor_version(programs: tools.pathlib.Path, name: str, text: str, status: int, used: bool) -> None:
    """Another minor version behaves differently, and what says none could be anything."""
    given = program_that_says(programs, name, text, status)
    assert tools.tool(name) == (given if used else tools.pathlib.Path("built"))


def test_what_the_person_names_is_used_as_it_is(programs: tools.pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: tools.pathlib.Path) -> None:
    """RUNTIME_GATE_TOOLS comes before PATH and may have any version; what is not there comes from elsewhere."""
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("RUNTIME_GATE_TOOLS", f"{tmp_path / 'none'}:{tmp_path / 'own'}")
    program_that_says(programs, "etcd", "etcd Version: 3.6.1")
    own = program_that_says(tmp_path / "own", "etcd", "etcd Version: 3.5.0")
    assert tools.tool("etcd") == own
    assert tools.tool("kubectl") == tools.pathlib.Path("built")


def test_a_runtime_on_path_is_never_used(programs: tools.pathlib.Path) -> None:
    """A test that says "containerd 2.1" runs the pinned program."""
    program_that_says(programs, "containerd", "containerd github.com/containerd/containerd/v2 v2.4.2")
    program_that_says(programs, "crictl", "crictl version v1.34.0")
    assert tools.tool("containerd-2.4") == tools.tool("crictl") == tools.pathlib.Path("built")
