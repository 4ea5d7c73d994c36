"""LOADING.md section 9 and what its source adds, measured on the real CRI-O daemons of the test bed.

What this proves: that the rules which the product's simulated start is built on hold for the very binaries in the test bed. The product
has no part in it: files are laid, a real daemon is started on them, and its own refusal says what sandboxes can use.
"""

from __future__ import annotations

import typing as t

import pytest

from tests.integration import crio_scenarios as scenarios
from tests.testbed.crio_host import CrioHost


@pytest.fixture(scope="module", params=scenarios.LINES)
def host(request: pytest.FixtureRequest) -> t.Iterator[CrioHost]:
    """One node per release line; each scenario resets it."""
    with CrioHost(request.param) as made:
        yield made


def test_outcomes(host: CrioHost) -> None:
    """Every tree ends as the table says."""
    measured = {name: scenarios.outcome(host, name) for name in scenarios.TREES}
    assert measured == {name: scenarios.expected(name, host.line) for name in scenarios.TREES}
