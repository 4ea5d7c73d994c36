# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Property: whatever a root file looks like, what is not ours stays byte for byte, and all of it comes back."""

from __future__ import annotations

import typing as t

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.plan import make_plan
from tests.unit import rendering_nodes as nodes

HANDLERS = {"nvidia": {"preset": "nvidia"}, "runsc": {"preset": "gvisor"}, "one": {"preset": "crun"}}

comments = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12).map(lambda text: "# " + text)
blanks = st.sampled_from(["", " ", "\t", "    "])
scalars = st.sampled_from(["1", "true", '"x"', "'y # z'", "[1, 2]", '[\n  "a", # one\n  "b",\n]', '"""\nlong\n"""', "1979-05-27"])
names = st.sampled_from(["one", "two", "three"])


@st.composite
def root_files(draw: t.Callable[..., t.Any], version: int) -> str:
    """A root file of a version, its tables in any order, with comments, blank lines and unknown keys anywhere."""
    plugin = draw(st.sampled_from(["\"%s\"", "'%s'"])) % ("io.containerd.grpc.v1.cri" if version == 2 else "io.containerd.cri.v1.runtime")
    handlers = draw(st.lists(names, unique=True))
    tables = [("plugins.%s.containerd.runtimes.runc" % plugin, ['runtime_type = "io.containerd.runc.v2"'])]
    tables += [("plugins.%s.containerd.runtimes.%s" % (plugin, name), ['runtime_type = "io.containerd.runc.v2"']) for name in handlers]
    if draw(st.booleans()):
        tables.append(("plugins.%s.containerd" % plugin, ['default_runtime_name = "runc"']))
    if draw(st.booleans()):
        tables.append(("plugins.%s" % plugin, ["enable_selinux = false"]))
    tables += [("plugins.'io.containerd.gc.v1.%s'" % name, ["x = %s" % draw(scalars)]) for name in draw(st.lists(names, unique=True))]
    top = ["version = %d" % version, "oom_score = -999"]
    if draw(st.booleans()):
        top.append(draw(st.sampled_from(["imports = []", 'imports = ["/etc/containerd/conf.d/*.toml"]', "imports = [\n  # none yet\n]"])))
    lines: t.List[str] = []
    for header, keys in [("", draw(st.permutations(top))), *draw(st.permutations(tables))]:
        indent = draw(blanks)
        lines += draw(st.lists(st.one_of(comments, blanks), max_size=2))
        lines += ["%s[%s]%s" % (indent, header, draw(st.sampled_from(["", " ", "  # table"])))] if header else []
        for key in keys:
            lines += draw(st.lists(comments, max_size=1))
            lines.append("%s%s%s" % (indent, key, draw(st.sampled_from(["", "  ", " # key"]))))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    return "\n".join(lines).replace("\n", ending) + draw(st.sampled_from(["", ending, ending * 3]))


def plan_of(files: t.Mapping[str, str], release: str, **options: t.Any) -> t.Dict[str, t.Any]:
    capture = nodes.capture(files, release)
    return make_plan(capture, interpret(capture), dict({"allow_absent_binary": True}, **options))


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), release=st.sampled_from(["1.6.20", "1.7.28", "2.0.5", "2.2.1", "2.3.4", "2.4.0"]), mode=st.sampled_from(["auto", "merge"]))
def test_what_is_not_ours_stays_and_comes_back(data: t.Any, release: str, mode: str) -> None:
    version = 2 if release.startswith("1.") else data.draw(st.sampled_from([2, 3]))
    files = {nodes.CONFIG: data.draw(root_files(version))}
    default = data.draw(st.sampled_from([None, "nvidia", "runc"]))
    options = {"handlers": HANDLERS, "default_handler": default, "mode": mode}
    try:
        plan = plan_of(files, release, **options)
    except RuntimeGateError as error:
        # Refused with a reason is right too, but only where a line could not be kept as a comment.
        assert "could hold a secret" in str(error), error
        return
    done = nodes.after(files, plan)
    kept = iter(done[nodes.CONFIG].splitlines(keepends=True))
    for line in files[nodes.CONFIG].splitlines(keepends=True):
        assert any(other.rstrip("\n") in (line.rstrip("\n"), "#|" + line.rstrip("\n")) for other in kept), line
    assert plan_of(done, release, **options)["writes"] == []
    assert nodes.after(done, plan_of(done, release, remove=True)) == files
