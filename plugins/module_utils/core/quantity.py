# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantities of Kubernetes ("250m", "128Mi", "1.5", "2e3"), exact: read, compared, written back as the API server writes them.

Source: the comment of Quantity in k8s.io/apimachinery/pkg/api/resource/quantity.go (its grammar and its canonical form) and
suffix.go (which adds n and u); https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/

Everything is an integer of nano units: the API keeps nothing finer, and rounds up what is ("if you want some resources, you
should get some resources").
"""

from __future__ import annotations

import functools
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import shown
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

NANO = 10**9
_MILLI = 10**6
_GRAMMAR = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?|[eE]([+-]?[0-9]+))\Z")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
# "no quantity may represent a number greater than 2^63-1 in magnitude … capped": the API server does so with binary suffixes
# only. A text beyond the other two bounds is no amount of anything.
_LARGEST = (2**63 - 1) * NANO
_LONGEST_TEXT = 64
_LARGEST_EXPONENT = 40
_EXPONENTS = [f"e{power}" if power else "" for power in range(-9, 100, 3)]


class Quantity(t.NamedTuple):
    """nano: the amount in 10^-9 of its unit. style: the kind of suffix it is written with, binary (Ki), decimal (k) or
    exponent (e3)."""

    nano: int
    style: str

    def milli(self) -> int:
        """The amount in thousandths, rounded up: what the scheduler counts cpu in."""
        return -(-self.nano // _MILLI)

    def whole(self) -> int:
        """The amount, rounded up: what the scheduler counts everything but cpu in."""
        return -(-self.nano // NANO)

    def __str__(self) -> str:
        """The canonical form: no fractional digits, the suffix as large as possible, nothing lost."""
        if self.style == "binary" and self.nano % NANO == 0 and abs(self.nano) >= 1024 * NANO:
            return _canonical(self.nano // NANO, 1024, ["", *_BINARY])
        if self.style == "exponent":
            return _canonical(self.nano, 1000, _EXPONENTS)
        return _canonical(self.nano, 1000, list(_DECIMAL))


def parse_quantity(raw: t.Any, where: str) -> Quantity:
    """A quantity as YAML or JSON hold it, a string or a plain number. where: its place, for the message.

    Raises RuntimeGateError for anything that the grammar does not have.
    """
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        raw = repr(raw)
    found = _parsed(raw) if isinstance(raw, str) else None
    if found is None:
        raise RuntimeGateError(f"{where} is {shown(raw)}, which is no quantity; write it like 250m, 0.5, 128Mi or 2Gi")
    return found


# A cluster has the same few dozen quantities in each of its thousands of pods.
@functools.lru_cache(maxsize=65536)
def _parsed(text: str) -> Quantity | None:
    match = _GRAMMAR.match(text.strip()) if len(text) <= _LONGEST_TEXT else None
    if not match:
        return None
    sign, number, suffix, exponent = match.groups()
    digits, _point, decimals = number.partition(".")
    unscaled, power = int(digits + decimals), -len(decimals)
    style, factor = "decimal", 1
    if exponent is not None:
        style, power = "exponent", power + int(exponent)
    elif suffix in _BINARY:
        style, factor = "binary", 2 ** _BINARY[suffix]
    else:
        power += _DECIMAL[suffix or ""]
    if abs(power) > _LARGEST_EXPONENT:
        return None
    nano = _rounded_up(unscaled * factor, power + 9)
    if style == "binary":
        nano = min(nano, _LARGEST)
    if style == "binary" and 0 < nano < NANO:
        style = "decimal"
    return Quantity(-nano if sign == "-" else nano, style)


def _rounded_up(unscaled: int, power: int) -> int:
    return unscaled * 10**power if power >= 0 else -(-unscaled // 10**-power)


def _canonical(amount: int, base: int, suffixes: t.Sequence[str]) -> str:
    """The amount with the largest suffix that leaves it whole."""
    if amount == 0:
        return "0"
    step = 0
    while amount % base == 0 and step + 1 < len(suffixes):
        amount, step = amount // base, step + 1
    return f"{amount}{suffixes[step]}"
