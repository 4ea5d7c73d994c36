"""rc-crosscheck inside a node of the test bed, beside a real daemon."""

from __future__ import annotations

import pytest

from tests.integration.ansible_runs import ROOT
from tests.testbed.host import CONFIG, ContainerdHost

SCRIPT = str(ROOT / "roles/gate/files/rc-crosscheck.sh")
V2 = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{handler}]
  runtime_type = "io.containerd.runc.v2"
"""
# CRI's own check refuses both together when it starts; the dump shows a handler list as if nothing were wrong.
DEAD = """[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."example.com"]
  endpoint = ["https://example.com"]
"""


def check(host, *handlers, dump=None):
    host.write("/run/handlers", "".join(handler + "\n" for handler in handlers))
    done = host.run([SCRIPT, *([dump] if dump else [])], env={"PATH": "/usr/bin:/bin", "RC_HANDLERS_FILE": "/run/handlers"}, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("line", ["1.7", "2.1"])
def test_a_real_daemon(line):
    with ContainerdHost(line) as host:
        host.write(CONFIG, V2.format(handler="nvidia"))
        assert host.start(), host.log()
        assert check(host, "runc", "nvidia")[:2] == (0, "OK\n")
        assert check(host, "kata", "nvidia")[:2] == (1, "MISSING=kata\n")

        host.write(CONFIG, V2.format(handler="kata"))  # edited, not restarted
        status, printed, error = check(host, "kata", "nvidia", "runc")
        assert (status, printed) == (1, "MISSING=kata\nMISSING=nvidia\n")
        assert "kata is in the dump and not loaded" in error and "nvidia is loaded and not in the dump" in error

        code, dumped, _error = host.dump()
        assert code == 0
        host.write("/run/dump.toml", dumped)
        assert check(host, "kata", "runc", dump="/run/dump.toml")[:2] == (0, "OK\n")

        host.stop()
        status, printed, error = check(host, "runc")
        assert (status, printed) == (1, "MISSING=runc\n") and "nobody listens" in error


@pytest.mark.parametrize("line", ["1.7", "2.1"])
def test_a_dead_cri_plugin_whose_dump_looks_fine_is_never_ok(line):
    with ContainerdHost(line) as host:
        host.write(CONFIG, V2.format(handler="nvidia") + DEAD)
        host.start()  # containerd runs, CRI does not
        assert host.running(), host.log()
        code, dumped, _error = host.dump()
        host.write("/run/dump.toml", dumped)
        assert code == 0 and check(host, "nvidia", dump="/run/dump.toml")[:2] == (0, "OK\n")
        status, printed, error = check(host, "nvidia", "runc")
        assert (status, printed) == (1, "MISSING=nvidia\nMISSING=runc\n") and "does not serve CRI" in error


def test_2_0_is_judged_by_what_it_migrates():
    with ContainerdHost("2.0") as host:
        host.write(CONFIG, V2.format(handler="nvidia"))
        assert host.start(), host.log()
        assert check(host, "runc", "nvidia")[:2] == (0, "OK\n")
