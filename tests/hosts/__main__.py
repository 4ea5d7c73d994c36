"""The command line of tests.hosts; see the package."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import typing as t

import tests.hosts
from tests.hosts import cluster
from tests.hosts.node import HostError, Hosts, why_not
from tests.testbed.tools import ToolError


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    try:
        return _main(*arguments)
    except (HostError, ToolError) as error:
        print(error, file=sys.stderr)
    except TypeError:
        print((tests.hosts.__doc__ or "").strip(), file=sys.stderr)
    return 2


def _main(command: str, directory: str = "", *words: str) -> int:
    if command == "check":
        reason = why_not()
        print(reason or "", end="")
        return 0 if reason is None else 1
    hosts = Hosts(pathlib.Path(directory))
    if command == "up":
        hosts.up(dict(word.split("=", 1) for word in words))
    elif command == "down":
        hosts.down()
    elif command == "serve-cluster":
        cluster.start(hosts, words[0], words[1:])
    elif command == "kubectl":
        return _pass_on(cluster.kubectl(hosts, words))
    else:
        return _one(hosts, command, *words)
    return 0


def _pass_on(done: subprocess.CompletedProcess[str]) -> int:
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _one(hosts: Hosts, command: str, name: str, *words: str) -> int:
    host = hosts.host(name)
    if command == "exec":
        return _pass_on(host.run(words))
    actions: dict[str, t.Callable[[], None]] = {
        "install": lambda: host.install(*words),
        "note-state": host.note_state,
        "check-state": lambda: host.check_state(*words),
        "start-pod": lambda: host.start_pod(*words),
        "check-pod": lambda: host.check_pod(*words),
        "try-pods": lambda: host.try_pods(words),
        "join": lambda: cluster.join(hosts, name),
    }
    if command in actions:
        actions[command]()
        return 0
    answers: dict[str, t.Callable[[], t.Any]] = {"ask": lambda: host.ask(*words), "calls": host.calls, "handlers": host.handlers}
    if command not in answers:
        raise HostError(f"{command}: no such command. {tests.hosts.__doc__}")
    print(json.dumps(answers[command](), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
