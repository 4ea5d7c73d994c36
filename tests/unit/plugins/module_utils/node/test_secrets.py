# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How secrets are looked for. What is found: tests/unit/test_planted_secrets.py and test_collect.py."""

from __future__ import annotations

import random

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import secrets

_TOKENS = (
    "passw pass word pwd pw secret token credential auth author api key apikey api-key accesskey KEY keyfile sig signature login x-api-key bearer "
    "basic -u --user --creds -t -- - k3s hooks.slack.com/services/ $2a$ {SHA} -----BEGIN LS0tLS1CRUdJTi eyJ ghp_ glpat- xoxb- AKIA hvs. K10 :: npm_ "
    "sk- code access = : @ %40 :// ? & ' \" , ; } [ . / _ a 1 ABCDEFGHIJ0123456789 0123456789abcdef abcdef.0123456789abcdef"
).split() + [" ", "\n"]


def test_what_rules_a_text_out_at_once_never_rules_out_a_secret() -> None:
    """content_spans asks two cheap patterns first; here _CONTENT alone is asked."""
    chosen, found = random.Random(1), 0
    for _number in range(20000):
        text = "".join(chosen.choice(_TOKENS) for _part in range(chosen.randint(1, 7)))
        if secrets._CONTENT.search(text):
            found += 1
            assert secrets._CONTENT_HINT.search(text), text
            assert not secrets._PLAIN.match(text) or secrets._PLAIN_SHAPES.search(text), text
    assert found > 1000
