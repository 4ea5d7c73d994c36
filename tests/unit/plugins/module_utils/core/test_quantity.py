# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities by their written rule. tests/cluster/test_quantities.py asks a real API server about the same texts.

Q: the comment of Quantity in k8s.io/apimachinery/pkg/api/resource/quantity.go
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.quantity import NANO, Quantity, parse_quantity
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

# text -> (nano units, canonical form, source)
TABLE: dict[t.Any, tuple[int, str, str]] = {
    "0": (0, "0", "Q: <number>"),
    "1": (NANO, "1", "Q: <suffix> may be empty"),
    1: (NANO, "1", "a YAML number"),
    0.5: (NANO // 2, "500m", "a YAML number"),
    "1.5": (1500 * 10**6, "1500m", "Q: 1.5 will be serialized as 1500m"),
    "1.5Gi": (1536 * 2**20 * NANO, "1536Mi", "Q: 1.5Gi will be serialized as 1536Mi"),
    "250m": (250 * 10**6, "250m", "Q: <decimalSI> m"),
    "1000m": (NANO, "1", "Q: the suffix is as large as possible"),
    "1000": (1000 * NANO, "1k", "Q: the suffix is as large as possible"),
    "1k": (1000 * NANO, "1k", "Q: 1000 = 1k"),
    "1Ki": (1024 * NANO, "1Ki", "Q: 1024 = 1Ki"),
    "1024Ki": (2**20 * NANO, "1Mi", "Q: the suffix is as large as possible"),
    "1000Ki": (1024000 * NANO, "1000Ki", "Q: no precision is lost"),
    "0.5Ki": (512 * NANO, "512", "Q: the suffix is as large as possible"),
    "1M": (10**6 * NANO, "1M", "Q: <decimalSI> M"),
    "2G": (2 * 10**9 * NANO, "2G", "Q: <decimalSI> G"),
    "1T": (10**12 * NANO, "1T", "Q: <decimalSI> T"),
    "1P": (10**15 * NANO, "1P", "Q: <decimalSI> P"),
    "1E": (10**18 * NANO, "1E", "Q: <decimalSI> E, no exponent behind it"),
    "1Ti": (2**40 * NANO, "1Ti", "Q: <binarySI> Ti"),
    "1Pi": (2**50 * NANO, "1Pi", "Q: <binarySI> Pi"),
    "1Ei": (2**60 * NANO, "1Ei", "Q: <binarySI> Ei"),
    "1e3": (1000 * NANO, "1e3", "Q: <decimalExponent>, and the same type of suffix is used again"),
    "12e6": (12 * 10**6 * NANO, "12e6", "Q: <decimalExponent>"),
    "2e-3": (2 * 10**6, "2e-3", "Q: <decimalExponent> has a sign"),
    "1e+2": (100 * NANO, "100", "Q: <decimalExponent> has a sign"),
    "1e19": (10**19 * NANO, "10e18", "a decimal number is not capped in fact"),
    ".5": (NANO // 2, "500m", "Q: .<digits>"),
    "1.": (NANO, "1", "Q: <digits>."),
    "+5": (5 * NANO, "5", "Q: <sign>; the sign will be omitted"),
    "-5": (-5 * NANO, "-5", "Q: <sign>"),
    "5n": (5, "5n", "suffix.go: n"),
    "1u": (1000, "1u", "suffix.go: u"),
    "0.1m": (10**5, "100u", "quantity.go rounds up to nano, not to milli, since 1.8"),
    "1e-12": (1, "1e-9", "Q: more precise will be rounded up"),
    "9Ei": ((2**63 - 1) * NANO, "9223372036854775807", "Q: larger will be capped"),
    "1.0001Gi": (1073849198182400000, "1073849198182400u", "Q: no fractional digits, nothing lost"),
    "0.0000000001Ki": (103, "103n", "Q: more precise will be rounded up"),
}


@pytest.mark.parametrize("text", TABLE)
def test_amount_and_canonical_form(text: t.Any) -> None:
    nano, canonical, source = TABLE[text]
    found = parse_quantity(text, "x")
    assert (found.nano, str(found)) == (nano, canonical), source
    again = parse_quantity(canonical, "x")
    assert again.nano == nano, "the canonical form means the same"


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [("250m", 250, 1), ("1", 1000, 1), ("0.1m", 1, 1), ("1001m", 1001, 2), ("128Mi", 134217728000, 134217728), ("0", 0, 0), ("-1500m", -1500, -1)],
)
def test_counts_are_rounded_up(text: str, milli: int, whole: int) -> None:
    """MilliValue and Value of quantity.go: the ceiling."""
    found = parse_quantity(text, "x")
    assert (found.milli(), found.whole()) == (milli, whole)


# "m", "." and "+" are 0 to the API server's parser, against its own grammar; somebody who writes one meant something else.
@pytest.mark.parametrize(
    "raw", ["", "m", ".", "+", "1e", "1K", "1ki", "1KI", "1.5.5", "1 Gi", "0x1", "1_0", "1Ki2", "1e1.5", "1e999999999", "1" * 65, None, True, [], {"a": 1}]
)
def test_what_is_no_quantity(raw: t.Any) -> None:
    with pytest.raises(RuntimeGateError, match="limits.cpu is .*no quantity; write it like 250m"):
        parse_quantity(raw, "limits.cpu")


def test_a_difference_is_written_like_its_first_part() -> None:
    memory, overhead = parse_quantity("16393244Ki", "x"), parse_quantity("128Mi", "x")
    assert str(Quantity(memory.nano - overhead.nano, memory.style)) == "16262172Ki"
