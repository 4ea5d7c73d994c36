# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product on a node of CRI-O: as product.py has it for containerd, with a restart and a judge of CRI-O's.

What this proves: nothing by itself. The judge is the daemon alone, through cri-ask and its own ``status config``.
"""

from __future__ import annotations

import typing as t

from tests.matrix.product import Product, Table
from tests.testbed.crio_host import CONFIG, CONFIG_DIR, ENVIRONMENT
from tests.testbed.host import HostError

RESTART = "/usr/local/sbin/restart-crio"
RESTART_SCRIPT = """#!/bin/sh
# What a unit does: end the daemon, start it with the same command line, and come back when it is ready (Type=notify).
pid=$(pgrep -x crio)
[ -n "$pid" ] && kill $pid
n=0
while [ -n "$pid" ] && kill -0 $pid 2>/dev/null; do
    sleep 0.02
    n=$((n + 1))
    [ $n -gt 1000 ] && exit 7
done
rm -f /run/crio/crio.sock
%(environment)s setsid /usr/bin/crio %%s </dev/null >/run/crio.log 2>&1 &
echo restarted >>/run/restarts
n=0
while [ ! -S /run/crio/crio.sock ]; do
    sleep 0.05
    n=$((n + 1))
    pgrep -x crio >/dev/null || [ $n -lt 20 ] || { grep fatal /run/crio.log >&2; exit 1; }
    [ $n -gt 400 ] && exit 8
done
exit 0
""" % {"environment": " ".join("%s=%s" % pair for pair in sorted(ENVIRONMENT.items()))}


class CrioProduct(Product):
    """The module on one node of CRI-O."""

    restart = RESTART
    restart_script = RESTART_SCRIPT

    def log(self) -> str:
        path = self.host.path("/run/crio.log")
        return path.read_text(errors="replace") if path.exists() else ""

    def loaded(self) -> t.Tuple[t.Dict[str, Table], t.Optional[str]]:
        """(the handlers that sandboxes can have, with the daemon's own description; the default handler).

        :raises HostError: CRI is not served.
        """
        if self.ask()["state"] != "served":
            raise HostError("CRI is not served: %s" % self.log()[-800:])
        said = self.host.handlers()
        return {name: said.get(name) or {} for name in self.host.usable_handlers()}, self.host.default_handler()

    def files(self) -> t.Dict[str, bytes]:
        """Every file below CRI-O's directory, and every directory there."""
        top = self.host.path("/etc/crio")
        found = {}
        for path in top.rglob("*"):
            found[str(path.relative_to(top))] = path.read_bytes() if path.is_file() else b"/"
        return found


__all__ = ("CONFIG", "CONFIG_DIR", "CrioProduct", "RESTART", "RESTART_SCRIPT")
