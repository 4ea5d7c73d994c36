# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects on the node, writes the capture on the controller."""

from __future__ import annotations

import os
import re
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import ANY_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import differs, write_capture
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_half import NodeHalfFailed, run_node_half

_ARGUMENTS = dict(ANY_OPTIONS, dest={"type": "path", "required": True})
_DIRECTORY_NAME = re.compile(r"[^/\x00-\x1f]+")


class ActionModule(ActionBase):
    """The controller's half."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = False
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        _validation, arguments = self.validate_argument_spec(argument_spec=_ARGUMENTS)
        try:
            path = _directory(self._loader.path_dwim(arguments.pop("dest")), task_vars["inventory_hostname"])
            capture, rest = run_node_half(self._execute_module, arguments, task_vars)
            result.update(rest)
            changed = differs(capture, path)
            if changed and not self._task.check_mode:
                write_capture(capture, path)
        except RuntimeGateError as error:
            return dict(result, failed=True, msg=str(error))
        except NodeHalfFailed as error:
            return dict(result, **error.result)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return dict(result, changed=changed, path=path, withheld=capture["node"].get("withheld", {}))


def _directory(dest: str, host: str) -> str:
    """The directory of one host.

    :raises RuntimeGateError: the host's name is no name of a directory.
    """
    if not _DIRECTORY_NAME.fullmatch(host) or host in (".", ".."):
        raise RuntimeGateError("The host name %r cannot be the name of a directory, so its capture is not written." % host)
    return os.path.join(dest, host)
