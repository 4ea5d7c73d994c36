"""Is the scenario `default` able to fail? It is run against products that are wrong on purpose; each must turn verify red.

    python -m tests.hosts.mutations

One pair of hosts serves all of them: a writer that skips a handler first, then the product as it is (which must be green), then a
gate whose verdict is inverted, a collector that does not ask the daemon and one that returns nothing.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = "default"
_SHIPPED = ("galaxy.yml", "meta", "playbooks", "plugins", "roles")


class Mutation(t.NamedTuple):
    """A text that is replaced in one file of the product. red: the task of verify.yml that must fail, one of them."""

    name: str
    file: str
    text: str
    replacement: str
    red: tuple[str, ...]


SKIPS = Mutation(
    "a writer that skips a handler",
    "plugins/plugin_utils/handlers_flow.py",
    "        self._call = call\n",
    "        self._call = call\n        options = dict(options, handlers={name: one for name, one in options['handlers'].items() if name != 'spare'})\n",
    ("The daemon has what was declared",),
)
INVERTED = Mutation(
    "a gate whose verdict is inverted",
    "plugins/module_utils/core/verdict.py",
    "    return verdict in LACKING or (",
    "    return verdict not in LACKING or (",
    ("Run it again", "Every node passes"),
)
DEAF = Mutation(
    "a collector that does not ask the daemon",
    "plugins/module_utils/node/collect.py",
    "        collector.ask_cri,\n",
    "",
    ("Run it again", "Every node passes"),
)
EMPTY = Mutation(
    "a collector that returns an empty answer",
    "plugins/module_utils/node/collect.py",
    "    return collector.capture()\n",
    "    return _Collector(options).capture()\n",
    ("Run it again", "Every node passes"),
)


def main() -> int:
    """Returns the exit code: 0 where every mutation was caught and the product itself was not."""
    caught = []
    with tempfile.TemporaryDirectory(prefix="runtime-gate-mutations-") as scratch:
        directory = pathlib.Path(scratch)
        try:
            for step in ("destroy", "create", "prepare"):
                _must(_molecule(step, directory, None), step)
            _must(_molecule("converge", directory, SKIPS), "converge")
            caught.append(_is_caught(directory, SKIPS))
            _must(_molecule("converge", directory, None), "converge")
            _must(_molecule("verify", directory, None), "verify")
            caught += [_is_caught(directory, mutation) for mutation in (INVERTED, DEAF, EMPTY)]
        finally:
            _molecule("destroy", directory, None)
    print(f"{sum(caught)} of {len(caught)} mutations were caught")
    return 0 if all(caught) else 1


def _must(done: subprocess.CompletedProcess[str], step: str) -> None:
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nmolecule {step} failed with the product that it must pass with")


def _is_caught(directory: pathlib.Path, mutation: Mutation) -> bool:
    done = _molecule("verify", directory, mutation)
    task = done.stdout.rpartition("\nTASK [")[2].partition("]")[0]
    caught = done.returncode != 0 and task.startswith(mutation.red)
    print(f"{mutation.name}: {'caught' if caught else 'NOT CAUGHT'}, verify ended with {done.returncode} at “{task}”", flush=True)
    if not caught:
        print(done.stdout)
    return caught


def _molecule(step: str, directory: pathlib.Path, mutation: Mutation | None) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(_product(directory, mutation)),
        "MOLECULE_EPHEMERAL_DIRECTORY": str(ROOT / ".cache/molecule/mutations"),
        "MOLECULE_COMMAND_BORDERS": "false",
        "ANSIBLE_NOCOLOR": "1",
        "NO_COLOR": "1",
    }
    command = [str(pathlib.Path(sys.executable).parent / "molecule"), step, "--scenario-name", SCENARIO]
    return subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800, check=False)


def _product(directory: pathlib.Path, mutation: Mutation | None) -> pathlib.Path:
    """A collections path whose kubenode.runtime_gate is a copy of the product, mutated."""
    home = directory / "collections"
    shutil.rmtree(home, ignore_errors=True)
    copy = home / "ansible_collections/kubenode/runtime_gate"
    copy.mkdir(parents=True)
    for name in _SHIPPED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    if mutation:
        target = copy / mutation.file
        text = target.read_text(encoding="utf-8")
        if text.count(mutation.text) != 1:
            raise SystemExit(f"{mutation.file} no longer has {mutation.text!r} once: mutate what took its place")
        target.write_text(text.replace(mutation.text, mutation.replacement), encoding="utf-8")
    return home


if __name__ == "__main__":
    sys.exit(main())
