# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One scenario for each numbered fault: files that make it happen on a real daemon, and how to see that it did.

`reproduced` asks the daemon (or the node), never the product. `mend` is what a fault's `fix` says where it has no edits.
"""

from __future__ import annotations

import dataclasses
import typing as t

from tests.testbed.host import CONFIG, ContainerdHost

OLD, NEW = 'plugins."io.containerd.grpc.v1.cri"', 'plugins."io.containerd.cri.v1.runtime"'
SHORT = "plugins.cri"
CONFD = "/etc/containerd/conf.d"
DROP_IN = CONFD + "/10-drop.toml"
IMPORTS = 'imports = ["%s/*.toml"]\n' % CONFD
K3S = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"

V1 = ("1.4", "1.6", "1.7")
V20 = ("2.0", "2.1", "2.2")
V23 = ("2.3.4", "2.3", "2.4")
V2 = V20 + V23
ALL = V1 + V2

Tree = t.Dict[str, str]
Check = t.Callable[[ContainerdHost], bool]


def binary(name: str) -> str:
    """The stand-in OCI binary that a handler of this name runs (only its presence counts)."""
    return "/usr/local/bin/%s-runtime" % name


def table(plugin: str, name: str, below: str = ".containerd", more: str = "", options: str = "") -> str:
    """A complete runc-type handler."""
    return '[{0}{1}.runtimes.{2}]\nruntime_type = "io.containerd.runc.v2"\n{3}[{0}{1}.runtimes.{2}.options]\nBinaryName = "{4}"\n{5}'.format(
        plugin, below, name, more, binary(name.strip('"')), options
    )


def runc(plugin: str) -> str:
    return '[%s.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n' % plugin


def lacks(handler: str) -> Check:
    """CRI is served and does not have the handler."""
    return lambda host: host.cri()["state"] == "served" and handler not in host.handlers()


def has(handler: str) -> Check:
    return lambda host: handler in host.handlers()


def default_is(name: str) -> Check:
    return lambda host: host.default_handler() == name


def cri_down(host: ContainerdHost) -> bool:
    """The daemon runs without serving CRI."""
    return host.running() and host.cri()["state"] == "unimplemented"


def fatal(host: ContainerdHost) -> bool:
    """The daemon ended at its start."""
    return not host.running() and bool(host.log())


def loaded(host: ContainerdHost, handler: str) -> t.Dict[str, t.Any]:
    return host.handlers().get(handler) or {}


@dataclasses.dataclass
class Scenario:
    """How one fault comes about on some release lines."""

    id: int
    lines: t.Tuple[str, ...]
    tree: Tree
    reproduced: Check
    #: handlers that the fault must name
    handlers: t.Tuple[str, ...] = ()
    #: files written after the daemon has started
    edited: Tree = dataclasses.field(default_factory=dict)
    arguments: t.Tuple[str, ...] = ()
    #: the config path to collect with where the daemon does not run to show it
    config_path: t.Optional[str] = None
    #: executables that are not there although a handler names them
    without: t.Tuple[str, ...] = ()
    kubelet: bool = False
    #: files to write (None: remove) where the fault has no edits
    mend: t.Dict[str, t.Optional[str]] = dataclasses.field(default_factory=dict)
    #: executables to install where that is the mending
    install: t.Tuple[str, ...] = ()
    #: the daemon of the mended twin is started with these arguments (None: the same)
    mended_arguments: t.Optional[t.Tuple[str, ...]] = None


def root(version: t.Optional[int], *parts: str, top: str = "") -> str:
    return ("version = %d\n" % version if version is not None else "") + top + "".join(parts)


def both(version: int, plugin: str, first: str, second: str) -> Tree:
    """Root and drop-in of the same version, each with these tables."""
    return {CONFIG: root(version, runc(plugin), first, top=IMPORTS), DROP_IN: root(version, second)}


def _runtime_type_of(handler: str, value: str) -> Check:
    return lambda host: handler in host.handlers() and loaded(host, handler).get("runtimeType") == value


def _binary_of(handler: str, value: str) -> Check:
    return lambda host: (loaded(host, handler).get("options") or {}).get("BinaryName") == value


def _dump_has(text: str) -> Check:
    return lambda host: text in host.dump()[1]


def _dump_lacks(text: str) -> Check:
    return lambda host: host.dump()[0] == 0 and text not in host.dump()[1]


_FOO, _KATA = table(OLD, "foo"), table(OLD, "kata")

SCENARIOS: t.List[Scenario] = [
    Scenario(1, ALL, {CONFIG: root(2, runc(OLD), _FOO)}, lacks("kata"), ("kata",), edited={CONFIG: root(2, runc(OLD), _FOO, _KATA)}),
    Scenario(2, V1, both(2, OLD, _FOO, runc(OLD) + _KATA), lacks("foo"), ("foo",)),
    Scenario(3, ("1.6", "1.7"), {CONFIG: root(2, _KATA)}, cri_down, ("kata", "runc")),
    Scenario(4, V20, {CONFIG: root(None, runc(SHORT), table(SHORT, "foo"))}, lacks("foo"), ("foo",)),
    Scenario(5, V1, {CONFIG: root(None, runc(OLD), _FOO)}, lacks("foo"), ("foo",)),
    Scenario(6, V20, {CONFIG: root(3, runc(OLD), _FOO)}, lacks("foo"), ("foo",)),
    Scenario(6, V23, {CONFIG: root(4, runc(OLD), _FOO)}, lacks("foo"), ("foo",)),
    Scenario(
        7,
        V20,
        {CONFIG: root(2, runc(OLD), _FOO, top=IMPORTS), DROP_IN: root(3, table(NEW, "kata"))},
        lacks("foo"),
        ("foo",),
    ),
    Scenario(
        7,
        ("2.3.4",),
        {CONFIG: root(2, runc(OLD), _FOO, top=IMPORTS), DROP_IN: root(3, table(NEW, "kata"))},
        fatal,
        ("foo", "kata"),
    ),
    Scenario(
        8,
        V20,
        {CONFIG: root(3, runc(NEW), table(NEW, "foo"), top=IMPORTS), DROP_IN: root(2, _KATA)},
        lacks("kata"),
        ("kata",),
    ),
    Scenario(
        9,
        V1,
        {CONFIG: root(2, runc(OLD), _FOO, top=IMPORTS), DROP_IN: root(1, '[debug]\nlevel = "info"\n')},
        lacks("foo"),
        ("foo",),
    ),
    Scenario(
        10,
        V20,
        {CONFIG: root(2, runc(OLD), _FOO, top=IMPORTS), DROP_IN: root(2, table(NEW, "kata"))},
        lacks("foo"),
        ("foo",),
    ),
    Scenario(11, V2, {CONFIG: root(2, _KATA, runc(NEW), table(NEW, "foo"))}, lacks("kata"), ("kata",)),
    Scenario(12, V1, {CONFIG: root(2, runc(SHORT), table(SHORT, "foo"))}, fatal, ("foo",)),
    Scenario(12, V2, {CONFIG: root(2, runc(SHORT), table(SHORT, "foo"))}, lacks("foo"), ("foo",)),
    Scenario(13, ALL, {CONFIG: root(2, runc(OLD), table('plugins."io.containerd.grpc.v1.crii"', "foo"))}, lacks("foo"), ("foo",)),
    Scenario(13, V1, {CONFIG: root(2, table("plugins.io.containerd.grpc.v1.cri", "foo"), runc(OLD))}, fatal, ("foo",)),
    Scenario(14, ALL, {CONFIG: root(2, runc(OLD), table(OLD, "foo", below=""))}, lacks("foo"), ("foo",)),
    Scenario(
        15,
        V2,
        {CONFIG: root(3, '[%s]\nsandbox_image = "registry.example/pause:9"\n' % NEW)},
        _dump_lacks("sandbox = 'registry.example/pause:9'"),
    ),
    Scenario(
        16,
        V2,
        {CONFIG: root(2, runc(OLD), table(OLD, "default").replace("runtimes.default", "default_runtime"))},
        default_is("runc"),
        ("default",),
    ),
    Scenario(
        17,
        V1,
        {
            CONFIG: root(
                2,
                '[%s.containerd]\ndefault_runtime_name = "foo"\n' % OLD,
                table(OLD, "default").replace("runtimes.default", "default_runtime"),
                runc(OLD),
                _FOO,
            )
        },
        default_is("default"),
        ("foo",),
    ),
    Scenario(
        18,
        ALL,
        {CONFIG: root(2, runc(OLD), top=IMPORTS), CONFD + "/kata.conf": root(2, runc(OLD), _KATA)},
        lacks("kata"),
        ("kata",),
    ),
    Scenario(
        19,
        ("1.4", "1.6"),
        {CONFIG: root(2, runc(OLD), top='imports = ["conf.d/*.toml"]\n'), DROP_IN: root(2, runc(OLD), _KATA)},
        lacks("kata"),
        ("kata",),
    ),
    Scenario(20, ALL, {CONFIG: root(2, runc(OLD), IMPORTS), DROP_IN: root(2, runc(OLD), _KATA)}, lacks("kata"), ("kata",)),
    Scenario(
        21, ("2.2",) + V23, {CONFIG: root(2, runc(OLD)), DROP_IN: root(2, _KATA)}, lacks("kata"), ("kata",)
    ),
    Scenario(
        22,
        ("1.4",),
        {CONFIG: root(2, runc(OLD), top='imports = ["%s/none.toml", "%s"]\n' % (CONFD, DROP_IN)), DROP_IN: root(2, runc(OLD), _KATA)},
        lacks("kata"),
        ("kata",),
    ),
    Scenario(
        22,
        ("1.6", "1.7") + V2,
        {CONFIG: root(2, runc(OLD), _FOO, top='imports = ["%s/none.toml"]\n' % CONFD)},
        fatal,
        ("foo",),
    ),
    Scenario(
        23,
        ("1.4",),
        {},
        lacks("foo"),
        arguments=("-c", "/etc/containerd/other.toml"),
        mend={"/etc/containerd/other.toml": root(2, runc(OLD), _FOO)},
    ),
    Scenario(
        23,
        ("1.6", "1.7") + V2,
        {},
        fatal,
        arguments=("-c", "/etc/containerd/other.toml"),
        config_path="/etc/containerd/other.toml",
        mend={"/etc/containerd/other.toml": root(2, runc(OLD), _FOO)},
    ),
    Scenario(
        24,
        ALL,
        {K3S: root(2, runc(OLD)), CONFIG: root(2, runc(OLD), _KATA)},
        lacks("kata"),
        ("kata",),
        arguments=("-c", K3S),
        mend={K3S: root(2, runc(OLD), _KATA)},
    ),
    Scenario(
        25,
        ALL,
        {K3S: root(2, runc(OLD))},
        lacks("kata"),
        ("kata",),
        edited={K3S: root(2, runc(OLD), _KATA)},
        arguments=("-c", K3S),
        mend={K3S: root(2, runc(OLD), _KATA)},
    ),
    Scenario(
        26,
        ALL,
        {CONFIG: root(2, runc(OLD), _FOO, top='disabled_plugins = ["io.containerd.grpc.v1.cri"]\n')},
        cri_down,
        ("foo",),
    ),
    Scenario(
        27,
        ALL,
        {CONFIG: root(2, '[%s.containerd]\ndefault_runtime_name = "nope"\n' % OLD, runc(OLD), _FOO)},
        cri_down,
        ("foo",),
    ),
    Scenario(
        28,
        V2,
        {
            CONFIG: root(2, runc(OLD), top=IMPORTS),
            CONFD + "/10-a.toml": root(2, _FOO.replace("foo-runtime", "kata-runtime")),
            CONFD + "/9-b.toml": root(2, _FOO),
        },
        _binary_of("foo", binary("foo")),
        ("foo",),
    ),
    Scenario(
        29,
        ALL,
        both(
            2,
            OLD,
            _FOO + '[proxy_plugins.p]\ntype = "snapshot"\naddress = "/run/p.sock"\n',
            '[proxy_plugins.p]\naddress = "/run/q.sock"\n',
        ),
        fatal,
        ("foo",),
    ),
    Scenario(
        30,
        ALL,
        {CONFIG: root(2, runc(OLD), top="oom_score = 100\n" + IMPORTS), DROP_IN: "version = 2\noom_score = 0\n"},
        _dump_has("oom_score = 100"),
    ),
    Scenario(
        31,
        ALL,
        {CONFIG: root(2, runc(OLD), '[%s.containerd.runtimes.foo.options]\nBinaryName = "%s"\n' % (OLD, binary("foo")))},
        _runtime_type_of("foo", ""),
        ("foo",),
    ),
    Scenario(
        32,
        ("1.6",),
        {
            CONFIG: root(
                2,
                runc(OLD),
                '[%s.containerd.runtimes.foo]\nruntime_type = "io.containerd.runc.v2"\nruntime_path = "/usr/bin/containerd-shim-runc-v2"\n'
                % OLD,
            )
        },
        lambda host: loaded(host, "foo").get("runtimePath") == "/usr/bin/containerd-shim-runc-v2",
        ("foo",),
    ),
    Scenario(
        33,
        ALL,
        {CONFIG: root(2, runc(OLD), table(OLD, "foo", options="SystemdCgoup = true\n"))},
        lambda host: has("foo")(host) and not (loaded(host, "foo").get("options") or {}).get("SystemdCgroup"),
        ("foo",),
    ),
    Scenario(
        34,
        ALL,
        {CONFIG: root(2, runc(OLD), _FOO)},
        lambda host: has("foo")(host) and not host.path(binary("foo")).exists(),
        ("foo",),
        without=("foo",),
        install=("foo",),
    ),
    Scenario(
        35,
        ("1.6", "1.7") + V2,
        {
            CONFIG: root(2, runc(OLD), '[%s.containerd.runtimes.runc.options]\nSystemdCgroup = true\n' % OLD, _FOO),
            "/var/lib/kubelet/config.yaml": "kind: KubeletConfiguration\ncgroupDriver: systemd\n",
        },
        lambda host: has("foo")(host) and not (loaded(host, "foo").get("options") or {}).get("SystemdCgroup"),
        ("foo",),
        kubelet=True,
    ),
    Scenario(
        36,
        V20,
        {CONFIG: root(2, runc(OLD), table(OLD, "foo", more='snapshotter = "native"\n'))},
        lambda host: loaded(host, "foo").get("snapshotter") == "native" and "runtime_platforms" not in host.dump()[1],
        ("foo",),
    ),
    Scenario(37, ALL, {CONFIG: root(2, runc(OLD), table(OLD, "Foo_X"))}, has("Foo_X"), ("Foo_X",)),
    Scenario(39, V2, both(2, OLD, _FOO, _FOO), has("foo"), ("foo",)),
    Scenario(
        40,
        ("2.3.4",),
        {CONFIG: root(3, runc(NEW), table(NEW, "foo"), top=IMPORTS), DROP_IN: root(4, table(NEW, "kata"))},
        fatal,
        ("foo", "kata"),
    ),
]

#: Numbers of the catalogue that no file of a node can show, and where they are judged instead.
ELSEWHERE = {
    38: "Node.status.runtimeHandlers is the API server's: judged by the cross-check (absent field: unknown)",
}
