# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes what a release would be and checks it: `make release-check`.

    python -m tests.release [--but CHECK] [CHECK…]

The tarball is left in .cache/release/dist. Everything after its making happens in a network namespace without an interface, so
that nothing can be fetched. Prints a line for each check, and what a failed one said; ends with 1 if one failed.
"""

from __future__ import annotations

import sys

from tests.release.checks import CHECKS, Failed, Release


def main(names: list[str]) -> int:
    if names[:1] == ["--but"]:
        names = [name for name in CHECKS if name not in names[1:]]
    unknown = sorted(set(names) - set(CHECKS))
    if unknown:
        print(f"release-check: there is no check {', '.join(unknown)}; there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    release, failed = Release(), 0
    for name, check in CHECKS.items():
        if names and name not in names:
            continue
        try:
            print(f"ok      {name:22} {check(release)}", flush=True)
        except Failed as error:
            failed += 1
            print(f"FAILED  {name:22} {error}", flush=True)
    ran = len(names or CHECKS)
    print(f"{ran - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
