# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A throw-away certificate authority for one control plane, by openssl.

What this proves: nothing by itself. Users, kubelets and the programs of the control plane are known by its client certificates
(common name: the user, organizations: its groups), the API server by a server certificate that names every address it is reached at.
"""

from __future__ import annotations

import ipaddress
import pathlib
import re
import subprocess
import typing as t

_DAYS = "2"
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """A certificate authority in a directory; its own certificate is `certificate`."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, mode=0o700)
        self.certificate, self._key = directory / "ca.crt", directory / "ca.key"
        extensions = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self._openssl("req", "-x509", *_KEY, "-keyout", self._key, "-out", self.certificate, "-days", _DAYS, "-subj", "/CN=testbed", *extensions)

    def client(self, user: str, groups: t.Sequence[str] = ()) -> tuple[pathlib.Path, pathlib.Path]:
        """(certificate, key) by which the API server knows this user and these groups."""
        stem = "client-" + user.replace(":", "-").replace("/", "-")
        subject = "".join(f"/{field}={_escaped(value)}" for field, value in [*(("O", group) for group in groups), ("CN", user)])
        return self._issue(stem, subject, "extendedKeyUsage=clientAuth")

    def server(self, name: str, addresses: t.Sequence[str]) -> tuple[pathlib.Path, pathlib.Path]:
        """(certificate, key) of a server that is reached at these addresses and names."""
        names = ",".join(f"{'IP' if _is_address(address) else 'DNS'}:{address}" for address in addresses)
        return self._issue(f"server-{name}", f"/CN={name}", "extendedKeyUsage=serverAuth", f"subjectAltName={names}")

    def key(self, name: str) -> pathlib.Path:
        """A bare private key, for instance the one that signs tokens of ServiceAccounts."""
        path = self.directory / f"{name}.key"
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
        return path

    def _issue(self, stem: str, subject: str, *extensions: str) -> tuple[pathlib.Path, pathlib.Path]:
        certificate, key = self.directory / f"{stem}.crt", self.directory / f"{stem}.key"
        added = [part for extension in (*extensions, "basicConstraints=critical,CA:FALSE") for part in ("-addext", extension)]
        signer = ("-CA", self.certificate, "-CAkey", self._key)
        self._openssl("req", "-x509", *_KEY, *signer, "-keyout", key, "-out", certificate, "-days", _DAYS, "-subj", subject, *added)
        return certificate, key

    def _openssl(self, *arguments: str | pathlib.Path) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60, cwd=self.directory)


def _escaped(value: str) -> str:
    """A value of openssl's -subj, in which / begins the next field and + a second one of the same rank."""
    return re.sub(r"([\\/+])", r"\\\1", value)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


__all__ = ("Authority",)
