"""The checks of a release, each seen to fail."""

from __future__ import annotations

import io
import pathlib
import sys
import tarfile

import pytest

from tests.release import checks
from tests.release.__main__ import main
from tests.release.checks import CHECKS, NO_NETWORK, Failed, Release, run
from tests.release.collection import TOP, checkout, packed, wrong_in

#: A file for each thing that belongs to the top of a release.
CLEAN = {f"{name}/x" if "." not in name and name != "LICENSE" else name: "x" for name in TOP}


def tarball(folder: pathlib.Path, files: dict[str, str], link: str = "") -> pathlib.Path:
    path = folder / "built.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        if link:
            member = tarfile.TarInfo(link)
            member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(member)
    return path


def test_a_clean_tarball(tmp_path) -> None:
    assert wrong_in(tarball(tmp_path, CLEAN)) == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({".venv/bin/python": "x"}, ".venv is not for a release"),
        ({"tests/unit/x.py": "x"}, "tests is not for a release"),
        ({"report.json": "{}"}, "report.json is not for a release"),
        ({"plugins/__pycache__/x.py": "x"}, "left by a tool"),
        ({"plugins/x.py.orig": "x"}, "left by a tool"),
        ({"changelogs/.plugin-cache.yaml": "x"}, "left by a tool"),
        ({"plugins/big.py": "x" * 500_000}, "has 500000 bytes"),
        ({"playbooks/empty.yml": ""}, "playbooks/empty.yml is empty"),
        ({"changelogs/fragments/new.yml": "x"}, "the changelog has not taken in"),
    ],
)
def test_what_does_not_belong_there(tmp_path, more: dict[str, str], why: str) -> None:
    (found,) = wrong_in(tarball(tmp_path, {**CLEAN, **more}))
    assert why in found


def test_an_empty_package_file_is_none(tmp_path) -> None:
    assert wrong_in(tarball(tmp_path, {**CLEAN, "plugins/__init__.py": ""})) == []


def test_what_is_missing_and_what_is_a_link(tmp_path) -> None:
    files = {name: text for name, text in CLEAN.items() if name != "CHANGELOG.rst"}
    assert wrong_in(tarball(tmp_path, files, "docs/link")) == ["CHANGELOG.rst is missing", "docs/link is neither a file nor a directory"]


def test_where_there_is_a_network_it_is_told() -> None:
    with pytest.raises(Failed, match="interfaces|loopback"):
        run([sys.executable, "-c", NO_NETWORK])
    run([sys.executable, "-c", NO_NETWORK], network=False)


def test_a_command_that_fails_is_told_with_what_it_said() -> None:
    with pytest.raises(Failed, match=r"python\S* ended with 3:\n.*the reason"):
        run([sys.executable, "-c", "print('the reason'); raise SystemExit(3)"])


def test_a_damaged_file_is_seen_by_the_verification(tmp_path) -> None:
    """What `air-gap` relies on: the checksums of a packed collection are those of its files."""
    made = packed(checks.kubernetes_core(), tmp_path)
    run([checks.programs() / "ansible-galaxy", "collection", "install", "--offline", "--no-deps", "-p", tmp_path / "to", made], network=False)
    verify = [checks.programs() / "ansible-galaxy", "collection", "verify", "--offline", "-p", tmp_path / "to", "kubernetes.core"]
    run(verify, network=False)
    with (tmp_path / "to/ansible_collections/kubernetes/core/README.md").open("a") as stream:
        stream.write("more\n")
    with pytest.raises(Failed, match="README.md"):
        run(verify, network=False)


def test_the_copy_has_what_git_knows(tmp_path) -> None:
    tree = checkout(tmp_path / "tree")
    assert (tree / "galaxy.yml").is_file() and (tree / "tests/release/checks.py").is_file()
    assert not (tree / ".venv").exists() and not (tree / "tests/cases").exists() and not (tree / ".git").exists()


@pytest.mark.parametrize(
    ("fragment", "why"),
    [("---\nminor_changes: a text, not a list\n", "minor_changes"), ("---\nno_such_section:\n  - x\n", "no_such_section")],
)
def test_fragments_that_make_no_changelog(tmp_path, monkeypatch, fragment: str, why: str) -> None:
    """The changelog of a copy whose only fragment is this one."""
    from tests.release import changelog

    for name in ("changelogs", "plugins", "roles", "playbooks", "meta"):
        (tmp_path / name).mkdir()
    (tmp_path / "galaxy.yml").write_text((checks.ROOT / "galaxy.yml").read_text())
    (tmp_path / "changelogs/config.yaml").write_text((checks.ROOT / "changelogs/config.yaml").read_text())
    (tmp_path / "changelogs/fragments").mkdir()
    (tmp_path / "changelogs/fragments/one.yml").write_text(fragment)
    monkeypatch.setattr(changelog, "ROOT", tmp_path)
    (tmp_path / ".venv").symlink_to(checks.ROOT / ".venv")
    with pytest.raises((RuntimeError, Failed), match=why):
        changelog.released(tmp_path / "out")


def test_a_changelog_that_took_nothing_in(tmp_path, monkeypatch) -> None:
    (tmp_path / "changelogs/fragments").mkdir(parents=True)
    (tmp_path / "changelogs/changelog.yaml").write_text("releases: {}\n")
    monkeypatch.setattr(checks, "run", lambda *_words, **_options: "")
    release = Release()
    release.__dict__["tree"] = tmp_path
    with pytest.raises(Failed, match="has 0 fragments"):
        CHECKS["changelog"](release)


def test_the_run_tells_each_failure_and_ends_with_1(monkeypatch, capsys) -> None:
    def bad(_release: Release) -> str:
        raise Failed("the reason")

    monkeypatch.setitem(CHECKS, "tarball", bad)
    monkeypatch.setitem(CHECKS, "changelog", lambda _release: "seen")
    assert main(["changelog", "tarball"]) == 1
    assert capsys.readouterr().out.splitlines() == ["ok      changelog              seen", "FAILED  tarball                the reason", "1 passed, 1 failed"]
    assert main(["changelog"]) == 0 and main(["changelgo"]) == 2
    assert main(["--but", *(name for name in CHECKS if name != "changelog")]) == 0
