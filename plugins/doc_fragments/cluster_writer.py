# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What holds for each action that writes into the cluster: it runs on the controller and sends nothing to any host."""

    DOCUMENTATION = r"""
attributes:
  action:
    description: Has a corresponding action plugin, so that parts of it run on the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and tells what it would without it.
    support: full
    details: By the API server's own dry run, so that a missing right or what somebody else owns is seen too.
  diff_mode:
    description: Shows what has changed when in diff mode.
    support: full
  idempotent:
    description: A second run changes nothing.
    support: full
  platform:
    description: The systems on whose hosts it can be used.
    support: full
    platforms: posix
"""
