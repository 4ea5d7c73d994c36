# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a command that a page shows is one that works: its program, options, playbook, variables, files and targets.

ansible's own command line parser judges the options of its programs. What can be run on the example cluster without changing
anything is run besides (tests/docs/test_commands.py).
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
import shlex
import subprocess
import typing as t

import yaml

from tests.docs.pages import ROOT, known_variables

#: Programs of others, which are shown and not run.
FOREIGN = frozenset("cat cd crictl git head helm kubectl mkdir oc pip printf sed systemctl".split())
#: What a reader has under these names: files that a page tells to write.
READERS_FILES = frozenset(("runtime-pools.yml",))
#: Variables that ansible itself knows.
_ANSIBLES = frozenset(("ansible_user",))
_TYPES = ("module", "role", "filter")


class BrokenCommandError(Exception):
    """The command would not do what the page says; the message says why."""


def check(command: str) -> None:
    """Raises BrokenCommandError where the command cannot work."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError as error:
        raise BrokenCommandError(f"no shell reads it: {error}") from error
    for part in _parts(words):
        _check_part(part)


def _parts(words: list[str]) -> list[list[str]]:
    """The commands between `&&`, `|` and `;`, without redirections and without variables before the program."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", "||", "|", ";"):
            parts.append([])
        elif not re.match(r"\d?>", word):
            parts[-1].append(word)
    for part in parts:
        while part and re.match(r"[A-Z][A-Z0-9_]*=", part[0]):
            part.pop(0)
    return [part for part in parts if part]


def _check_part(words: list[str]) -> None:
    program, arguments = words[0], words[1:]
    name = pathlib.PurePosixPath(program).name
    if "/" in program and not program.startswith(".venv/bin/") and not (ROOT / program).is_file():
        raise BrokenCommandError(f"{program} is no file of this repository")
    if program.startswith(".venv/bin/") and not (ROOT / program).exists():
        raise BrokenCommandError(f"{program} is not in the environment that make venv makes")
    checks = {"ansible-playbook": _playbook, "ansible-doc": _doc, "ansible-galaxy": _galaxy, "make": _make, "python": _python}
    if name in checks:
        checks[name](arguments)
    elif name not in FOREIGN and "/" not in program:
        raise BrokenCommandError(f"nothing is known of the program {name}: add a check to tests/docs/commands.py")


def _parsed(program: str, arguments: list[str]) -> t.Any:
    """The options, by the parser of the program itself."""
    from ansible.cli.doc import DocCLI
    from ansible.cli.galaxy import GalaxyCLI
    from ansible.cli.playbook import PlaybookCLI

    cli = {"ansible-playbook": PlaybookCLI, "ansible-doc": DocCLI, "ansible-galaxy": GalaxyCLI}[program]([program, *arguments])
    cli.init_parser()
    try:
        return cli.parser.parse_args(arguments)
    except SystemExit as error:
        raise BrokenCommandError(f"{program} does not take these options") from error


def _playbook(arguments: list[str]) -> None:
    options = _parsed("ansible-playbook", arguments)
    for playbook in options.args:
        playbook_file(playbook)
    for text in options.extra_vars or ():
        for name in _names_given(text):
            if name not in known_variables() | _ANSIBLES:
                raise BrokenCommandError(f"no role or playbook has a variable {name}")


def playbook_file(name: str) -> pathlib.Path:
    """The file of a playbook, by its full name or its path. Raises BrokenCommandError where there is none."""
    own = re.fullmatch(r"kubenode\.runtime_gate\.(\w+)", name)
    path = ROOT / f"playbooks/{own[1]}.yml" if own else ROOT / name
    if not path.is_file():
        raise BrokenCommandError(f"there is no playbook {name}")
    return path


def _names_given(text: str) -> list[str]:
    """The names of the variables of one -e."""
    if text.startswith("@"):
        if text[1:] in READERS_FILES:
            return []
        if not (ROOT / text[1:]).is_file():
            raise BrokenCommandError(f"there is no file {text[1:]}")
        return list(yaml.safe_load((ROOT / text[1:]).read_text(encoding="utf-8")))
    if text.startswith("{"):
        try:
            return list(json.loads(text))
        except ValueError as error:
            raise BrokenCommandError(f"-e {text} is no JSON: {error}") from error
    pairs = shlex.split(text)
    if not pairs or not all(re.match(r"\w+=", pair) for pair in pairs):
        raise BrokenCommandError(f"-e {text} gives no variable a value")
    return [pair.partition("=")[0] for pair in pairs]


def _doc(arguments: list[str]) -> None:
    options = _parsed("ansible-doc", arguments)
    for name in options.args:
        short = name.rpartition(".")[2]
        places = {"module": f"plugins/modules/{short}.py", "role": f"roles/{short}/meta/argument_specs.yml", "filter": f"plugins/filter/{short}.py"}
        if options.type not in _TYPES or not name.startswith("kubenode.runtime_gate.") or not (ROOT / places[options.type]).is_file():
            raise BrokenCommandError(f"there is no {options.type} {name}")


def _galaxy(arguments: list[str]) -> None:
    _parsed("ansible-galaxy", arguments)


def _python(arguments: list[str]) -> None:
    """`python -m MODULE …`: the module is there; pytest's files too."""
    if arguments[:1] != ["-m"] or len(arguments) < 2:
        raise BrokenCommandError("only python -m MODULE is known here")
    module = arguments[1]
    if module.startswith("tests.") and not any((ROOT / (module.replace(".", "/") + end)).exists() for end in (".py", "/__main__.py")):
        raise BrokenCommandError(f"there is no module {module}")
    for word in arguments[2:]:
        if re.match(r"(?:tests|docs)/", word) and not (ROOT / word).exists():
            raise BrokenCommandError(f"there is no {word}")


def _make(arguments: list[str]) -> None:
    for word in arguments:
        name, equals, _value = word.partition("=")
        if equals and name not in _make_words()[1]:
            raise BrokenCommandError(f"the Makefile knows no variable {name}")
        if not equals and name not in _make_words()[0]:
            raise BrokenCommandError(f"the Makefile has no target {name}")


@functools.cache
def _make_words() -> tuple[frozenset[str], frozenset[str]]:
    """(targets, variables) of the Makefile, by make itself."""
    database = subprocess.run(["make", "-pnrR", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    phony = re.search(r"^\.PHONY: (.+)$", database, re.MULTILINE)
    used = re.findall(r"\$\(([A-Z_]+)\)|\$\(if \$\(([A-Z_]+)\)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    return frozenset(phony[1].split() if phony else ()), frozenset(name for pair in used for name in pair if name)
