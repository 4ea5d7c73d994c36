# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the documentation site and checks its links.

    python -m tests.docs

The site lies in .cache/docs/html afterwards, the addresses that it links to elsewhere in .cache/docs/external-links.txt; they are
not fetched. Ends with 1 and the reason where a fault has no page, a link leads nowhere, or a tool complains.
"""

from __future__ import annotations

import os
import shutil
import sys

from tests.docs import faults, links, site
from tests.docs.pages import ROOT
from tests.integration.ansible_runs import environment
from tests.release.changelog import released
from tests.release.tools import programs

OUT = ROOT / ".cache/docs"


def main() -> int:
    source, built = OUT / "source", OUT / "html"
    try:
        site.assemble(source)
        known = _environment()
        site.reference(programs() / "antsibull-docs", source / "collection", known)
        shutil.copy(released(OUT / "changelog"), source / "changelog.md")
        site.build(programs() / "sphinx-build", source, built, known)
    except (faults.FaultError, site.BrokenLinkError, LookupError, RuntimeError) as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    checked = links.check(built)
    (OUT / "external-links.txt").write_text("\n".join(checked.external) + "\n", encoding="utf-8")
    for broken in checked.broken:
        print(f"docs: broken link: {broken}", file=sys.stderr)
    pages = len(list(built.rglob("*.html")))
    print(
        f"docs: {pages} pages, {checked.internal} links within, {len(checked.broken)} broken; "
        f"{len(checked.external)} links elsewhere, not fetched: {(OUT / 'external-links.txt').relative_to(ROOT)}"
    )
    print(f"docs: {(built / 'index.html').relative_to(ROOT)}")
    return 1 if checked.broken or not checked.internal else 0


def _environment() -> dict[str, str]:
    """antsibull-docs asks ansible-doc, which finds this collection and kubernetes.core beside the tests' own ansible."""
    known = environment(ANSIBLE_COLLECTIONS_PATH=str(next((ROOT / ".venv/lib").glob("python3*/site-packages"))))
    path = os.pathsep.join([str(programs()), known["PATH"]])
    return {**known, "PATH": path, "RUNTIME_GATE_VERSION": site.version(), "RUNTIME_GATE_REPOSITORY": site.repository()}


if __name__ == "__main__":
    sys.exit(main())
