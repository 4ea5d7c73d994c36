"""Trees of CRI-O configuration, and what real daemons were measured to make of them.

What this proves: nothing by itself. test_crio_loading_measured.py compares the table with the daemons; the unit tests compare the product's
simulated start with the table. An outcome is what sandboxes can use, by the daemon's refusal of a handler that does not exist, and its
default; "FATAL" where it does not start.
"""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from tests.testbed.crio_host import CrioHost

LINES = ("1.34", "1.36")
#: The versions behind the lines (the proxy's v1.34.0 was tagged before some keys of the line were there).
VERSIONS = {"1.34": "1.34.0", "1.36": "1.36.3"}
D = "/etc/crio/crio.conf.d/"
BASE = {D + "10-crio.conf": '[crio.runtime]\ndefault_runtime = "runc"\n[crio.runtime.runtimes.runc]\nruntime_path = "/usr/bin/runc"\n'}


def table(name: str, more: str = "", path: str = "/usr/bin/runc") -> str:
    """A handler's table."""
    return f'[crio.runtime.runtimes.{name}]\nruntime_path = "{path}"\n{more}'


#: Programs of the trees beside those of CrioHost: path -> a script, or a file that nobody may execute.
SCRIPTS = ("/opt/kata/containerd-shim-kata-v2", "/opt/conmonrs")
PLAIN = ("/opt/plain",)

#: name -> (files beside BASE, outcome on every line); a tree that lays 10-crio.conf itself replaces BASE's.
TREES: dict[str, tuple[dict[str, str], str]] = {
    'none': ({D + '10-crio.conf': ''}, 'crun default=crun'),
    'default_no_table': ({D + 'a': '[crio.runtime]\ndefault_runtime="nvidia"\n', D + '10-crio.conf': ''}, 'FATAL'),
    'default_empty': ({D + 'a': '[crio.runtime]\ndefault_runtime=""\n', D + '10-crio.conf': ''}, 'crun default=crun'),
    'bak_loaded': (
        {
            D + '10-crio.conf.bak': table('old'),
            D + '.x.swp': table('hid'),
            D + 'sub/deep/f': table('deep'),
        },
        'crun deep hid old runc default=runc',
    ),
    'order': ({D + '9-z': table('x', path='/usr/bin/crun'), D + '10-a': table('x')}, 'crun runc x default=runc'),
    'dir_order': ({D + 'a.conf': table('x', path='/usr/bin/crun'), D + 'a/z': table('x')}, 'crun runc x default=runc'),
    'replace': ({D + '20': '[crio.runtime.runtimes.runc]\nallowed_annotations=["io.kubernetes.cri-o.Devices"]\n'}, 'crun runc default=runc'),
    'case': ({D + '20': '[CRIO.Runtime.RUNTIMES.x]\nRuntime_Path="/usr/bin/runc"\n'}, 'crun runc x default=runc'),
    'two_case': ({D + '20': table('x', '[crio.runtime.Runtimes.y]\nruntime_path="/usr/bin/runc"\n')}, 'crun runc x y default=runc'),
    'unknown_tables': (
        {
            D + '20': '[crio.runtime.runtime.foo]\nruntime_path="/usr/bin/runc"\n[crio.runtimes.bar]\nruntime_path="/usr/bin/runc"\n'
            '[runtimes.baz]\nruntime_path="/usr/bin/runc"\n',
        },
        'crun runc default=runc',
    ),
    'vm_bad_name': ({D + '20': table('v', 'runtime_type="vm"\n')}, 'crun runc default=runc'),
    'vm_good': (
        {
            D + '20': table('v', 'runtime_type="vm"\nruntime_root="/run/vc"\n', path='/opt/kata/containerd-shim-kata-v2'),
        },
        'crun runc v default=runc',
    ),
    'vm_cfg': (
        {
            D + '20': table('v', 'runtime_type="vm"\nruntime_config_path="/nonexistent/kata.toml"\n', path='/opt/kata/containerd-shim-kata-v2')
            + table('w', 'runtime_config_path="/etc/crio"\n'),
        },
        'crun runc default=runc',
    ),
    'pod': ({D + '20': table('p', 'runtime_type="pod"\nmonitor_path="/opt/conmonrs"\n')}, 'crun runc default=runc'),
    'badtype': ({D + '20': table('p', 'runtime_type="oci2"\n')}, 'crun runc default=runc'),
    'annot': (
        {
            D + '20': table('a', 'allowed_annotations=["nonsense"]\n') + table('b', 'allowed_annotations=["devices.crio.io"]\n'),
        },
        'b crun runc default=runc',
    ),
    'notexec': ({D + '20': table('n', path='/opt/plain')}, 'crun n runc default=runc'),
    'notexec_default': (
        {
            D + '20': '[crio.runtime]\ndefault_runtime="n"\n' + table('n', path='/opt/plain'),
            D + '10-crio.conf': '',
        },
        'crun n default=n',
    ),
    'default_missing_bin': ({D + '20': '[crio.runtime]\ndefault_runtime="n"\n' + table('n', path='/opt/none'), D + '10-crio.conf': ''}, 'FATAL'),
    'nopath_lookup': (
        {
            D + '20': '[crio.runtime.runtimes.crun]\nruntime_root="/run/c"\n' + '[crio.runtime.runtimes.zz]\nruntime_root="/run/z"\n',
        },
        'crun runc default=runc',
    ),
    'bad_toml': ({D + '20': '[crio.runtime\n'}, 'FATAL'),
    'dup_table': ({D + '20': table('x') + table('x')}, 'FATAL'),
    'wrong_type': ({D + '20': '[crio.runtime]\nlog_level=3\n'}, 'FATAL'),
    'wrong_type2': ({D + '20': '[crio.runtime.runtimes.x]\nruntime_path=["a"]\n'}, 'FATAL'),
    'handler_no_table': ({D + '20': '[crio.runtime.runtimes]\nx="y"\n'}, 'FATAL'),
    'bom': ({D + '20': '\ufeff' + table('x')}, 'crun runc x default=runc'),
    'crlf': ({D + '20': '[crio.runtime.runtimes.x]\r\nruntime_path="/usr/bin/runc"\r\n'}, 'crun runc x default=runc'),
    'monitor_missing': ({D + '20': table('x', 'monitor_path="/opt/nope"\n')}, 'FATAL'),
    'conmon_missing': ({D + '20': '[crio.runtime]\nconmon="/opt/nope"\n'}, 'FATAL'),
    'inherit': ({D + '20': '[crio.runtime.runtimes.i]\ninherit_default_runtime=true\n'}, 'crun i runc default=runc'),
    'sync': ({D + '20': table('s', 'no_sync_log=true\nruntime_type="pod"\n')}, 'crun runc default=runc'),
    'ws': ({D + '20': table('s', 'stream_websockets=true\n')}, 'crun runc default=runc'),
    'aff': ({D + '20': table('s', 'exec_cpu_affinity="last"\n')}, 'crun runc default=runc'),
    'root_conf': ({'/etc/crio/crio.conf': table('rootx', '[crio.runtime]\ndefault_runtime="crun"\n')}, 'crun rootx runc default=runc'),
    'upper': ({D + '20': table('Kata_X')}, 'Kata_X crun runc default=runc'),
    'dotted': ({D + '20': '[crio.runtime.runtimes.kata.qemu]\nruntime_path="/usr/bin/runc"\n'}, 'crun runc default=runc'),
    'quoted': ({D + '20': '[crio.runtime.runtimes."kata.qemu"]\nruntime_path="/usr/bin/runc"\n'}, 'crun kata.qemu runc default=runc'),
    'nested_typo': ({D + '20': '[crio.runtime.runtimess.x]\nruntime_path="/usr/bin/runc"\n'}, 'crun runc default=runc'),
    'inline': ({D + '20': 'crio.runtime.runtimes.x = {runtime_path="/usr/bin/runc"}\n'}, 'crun runc x default=runc'),
    'seccomp': ({D + '20': table('s', 'seccomp_profile="/nonexistent/profile.json"\n')}, 'crun runc s default=runc'),
    'binfile': ({D + '20.swp': '\x00\x01b0VIM 9.0'}, 'FATAL'),
    'elsewhere': ({'/etc/crio/conf.d/20.conf': table('x')}, 'crun runc default=runc'),
    'relpath': ({D + '20': table('x', path='bin/runc')}, 'crun runc x default=runc'),
    'cont_min': ({D + '20': table('x', 'container_min_memory="bogus"\ncontainer_create_timeout=5\n')}, 'crun runc x default=runc'),
    'workload': (
        {
            D + '20': '[crio.runtime.workloads.w]\nactivation_annotation="a"\nannotation_prefix="p"\n[crio.runtime.workloads.w.resources]\ncpushares=5\n',
        },
        'crun runc default=runc',
    ),
}
#: Where a line does something else.
ELSE: dict[tuple[str, str], str] = {
    ("pod", "1.34"): "crun p runc default=runc",
    ("annot", "1.34"): "crun runc default=runc",
    ("ws", "1.34"): "crun runc s default=runc",
    ("aff", "1.34"): "crun runc s default=runc",
}


def tree(name: str) -> dict[str, str]:
    """Path -> text of every file of a scenario."""
    return {path: text for path, text in {**BASE, **TREES[name][0]}.items() if text or path not in BASE}


def expected(name: str, line: str) -> str:
    """The measured outcome."""
    return ELSE.get((name, line), TREES[name][1])


def outcome(host: CrioHost, name: str) -> str:
    """What a real daemon makes of it."""
    host.reset()
    for path, text in tree(name).items():
        host.write(path, text)
    for path in SCRIPTS:
        host.install_script(path, "#!/bin/sh\nexit 1\n")
    for path in PLAIN:
        host.write(path, "x")
    if not host.start():
        return "FATAL"
    return f"{' '.join(host.usable_handlers())} default={host.default_handler()}"
