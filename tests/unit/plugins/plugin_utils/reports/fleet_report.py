"""Reports for the tests of their formats: hosts with the verdicts that they are told to have."""

from __future__ import annotations

import typing as t

FAILING = ("missing", "restart_required", "unusable", "unknown")


def host(name: str, words: t.Mapping[str, str], pool: str | None = None, **more: t.Any) -> dict[str, t.Any]:
    """A host of a report. words: class -> verdict; `time bomb` and `pending` stand for what they are called."""
    verdicts = []
    for column, word in words.items():
        if word in ("ok", "not_targeted"):
            continue
        bomb, pending = word == "time bomb", word == "pending"
        verdicts.append(
            {
                "runtime_class": column, "handler": column, "verdict": "ok" if bomb else "missing" if pending else word,
                "after_restart": "missing" if bomb else "unknown", "pending": pending, "fails": bomb or word in FAILING,
                "reason": f"{column} is {word} on {name}", "fix": "Mend it.", "faults": [18],
            }
        )  # fmt: skip
    cells = {column: {"time bomb": "ok", "pending": "missing"}.get(word, word) for column, word in words.items()}
    return {
        "host": f"{name}.example.com", "node": name, "pool": pool, "unreachable": False, "judged": True, "error": None, "engine": "containerd",
        "version": "2.1.9", "default_handler": "runc", "handlers": {"runc": {}}, "cells": cells, "verdicts": verdicts,
        "fails": any(verdict["fails"] for verdict in verdicts), "faults": [{"id": 18, "name": "not-imported", "severity": "warning"}] if verdicts else [],
        **more,
    }  # fmt: skip


def report(*hosts: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    """A report of these hosts."""
    failing = [each for each in hosts if each["fails"]]
    number = len(hosts)
    return {
        "schema": 1, "generated_at": "2026-06-01T08:05:00Z", "check_mode": False, "ok": not failing, "hosts": list(hosts),
        "counts": {
            "hosts": number, "judged": number, "failing": len(failing), "unreachable": 0, "cluster_nodes": number, "cluster_nodes_judged": number
        },
        "not_judged": {"hosts": [], "nodes": []}, "notices": [],
        "blast_radius": {each["node"]: {"default_handler": each["default_handler"], "reach": "gpu-pods", "pods": ["a/b"]} for each in hosts if each["node"]},
        "failing_nodes": [each["node"] for each in failing], "missing": {}, "classes": [], **more,
    }  # fmt: skip
