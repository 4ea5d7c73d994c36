# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Options of what reads a node; module_utils/collect_options.py holds their argument spec."""

    DOCUMENTATION = r"""
options:
  config_path:
    description:
      - The root configuration file of the runtime.
      - Without it, the one that the daemon was started with, or that its unit names.
    type: path
  endpoint:
    description:
      - The socket of the runtime, as a path or a C(unix://) URL.
      - Without it, the one that the kubelet uses (flag, configuration file or environment), which also decides which
        of several runtimes is the right one.
    type: str
  crictl:
    description:
      - The executable of crictl. Without it, one that is found on the PATH is used.
      - Where there is none, or where it fails, the runtime is asked without it.
    type: path
  timeout:
    description: Seconds for each thing that is asked on the node. A program that is run there may take four times as long.
    type: float
    default: 5.0
requirements:
  - Python 3.8 or later on the node, and nothing else.
notes:
  - Root privileges (C(become)) are needed to ask the runtime and to see its process.
  - Secrets are masked on the node, before anything leaves it. A file in which they cannot be located with certainty is
    withheld, and the result says so.
"""

    CONTAINERD = r"""
options:
  containerd:
    description:
      - The executable of containerd that a restart would run.
      - Without it, the one that the daemon's unit or the running process names, else the one on the PATH.
    type: path
"""

    CRIO = r"""
options:
  crio:
    description:
      - The executable of CRI-O that a restart would run.
      - Without it, the one that the daemon's unit or the running process names, else the one on the PATH.
    type: path
  config_dir:
    description:
      - CRI-O's directory of drop-ins. Every file below it is configuration, whatever its name.
      - Without it, the one that the daemon was started with, or that its unit names.
    type: path
"""
