# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities, read and written back as a real API server does: the table of the unit test, and as many made ones."""

from __future__ import annotations

import json
import random
import typing as t
import urllib.error

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.quantity import parse_quantity
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from tests.cluster.control_plane import ControlPlane
from tests.unit.plugins.module_utils.core.test_quantity import TABLE

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses?dryRun=All"
_SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "e-2", "E2", "K", "kb", "mi", "e", "Ki1")


@pytest.fixture(scope="module", name="cluster")
def _cluster() -> t.Iterator[ControlPlane]:
    with ControlPlane() as cluster:
        yield cluster


def stored(cluster: ControlPlane, text: t.Any) -> str | None:
    """How the API server writes the quantity of an overhead; None where it does not take it for one."""
    body = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "q"},
        "handler": "h",
        "overhead": {"podFixed": {"memory": text}},
    }
    try:
        return t.cast(str, cluster.request("POST", CLASSES, body)["overhead"]["podFixed"]["memory"])
    except urllib.error.HTTPError as error:
        message = json.loads(error.read())["message"]
        assert "quantit" in message, message
        return None


def ours(text: t.Any) -> str | None:
    try:
        return str(parse_quantity(text, "x"))
    except RuntimeGateError:
        return None


def made(count: int) -> list[str]:
    """Texts of all kinds, drawn; a fixed seed, so that a difference can be looked at."""
    draw = random.Random(7)
    numbers = ("0", "00", "1", "7", "007", "999", "1000", "1024", "1048576", "123456789", "1.5", "0.25", "1.001", ".5", "3.", "12.3456789", "-", "1.2.3", "")
    texts = [f"{draw.choice(numbers)}{draw.choice(_SUFFIXES)}" for _index in range(count)]
    # A lone sign, point or suffix is 0 to the API server, against its own grammar; here it is no quantity (test_quantity.py).
    return [text for text in texts if text[:1].isdigit() or text[:1] == "." and text[1:2].isdigit()]


def test_the_api_server_reads_and_writes_them_alike(cluster: ControlPlane, tell: t.Callable[[str], None]) -> None:
    # It keeps the text of some that are not in canonical form; then the amounts are compared.
    texts = [text for text in TABLE if parse_quantity(text, "x").nano >= 0] + made(400)
    differ = {}
    for text in texts:
        theirs = stored(cluster, text)
        if theirs != ours(text) and not (theirs == str(text) and ours(text) and parse_quantity(theirs, "x") == parse_quantity(text, "x")):
            differ[text] = (theirs, ours(text))
    refused = sum(ours(text) is None for text in texts)
    tell(f"quantities: {len(texts)} texts ({refused} refused), {len(differ)} differences")
    assert refused > 20
    assert not differ
