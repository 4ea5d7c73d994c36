# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that were masked come back by ordinal, byte for byte, or the edit is refused."""

from __future__ import annotations

import time

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld

_TEXT = """version = 2
# password = "in a comment"
[a.auth]
password = 'lit"eral'
token = \"\"\"two
lines\"\"\"
identitytoken = 12345678
url = "https://user:pa55w0rd@registry.example/v2"
"""


def test_an_unmasked_text_stays() -> None:
    assert Masker().put_back("a = 2\n", "a = 1\n") == "a = 2\n"


def test_every_form_comes_back() -> None:
    masked = Masker().toml(_TEXT)
    assert masked.count("__RUNTIME_GATE_MASKED_") == 5
    edited = "# first\n" + masked.replace("version = 2", "version = 3") + "more = 1\n"
    assert Masker().put_back(edited, _TEXT) == "# first\n" + _TEXT.replace("version = 2", "version = 3") + "more = 1\n"


def test_ten_values_are_not_mixed_up() -> None:
    text = "".join('[r%d]\npassword = "value%d"\n' % (number, number) for number in range(1, 13))
    assert Masker().put_back(Masker().toml(text), text) == text
    url = "".join('u%d = "https://u:value%d@h/"\n' % (number, number) for number in range(1, 13))
    assert Masker().put_back(Masker().toml(url), url) == url


def test_a_value_that_looks_like_a_placeholder() -> None:
    text = 'password = "x__RUNTIME_GATE_MASKED_2__"\ntoken = "abcd1234"\n'
    assert Masker().put_back(Masker().toml(text), text) == text


def test_a_recording_keeps_its_own_placeholders() -> None:
    text = 'password = "__RUNTIME_GATE_MASKED_1__"\ntoken = "abcd1234"\n'
    assert Masker().put_back(Masker().toml(text), text) == text


@pytest.mark.parametrize(
    ("edited", "original", "words"),
    [
        ("a = 1\n", 'password = "abcd1234"\n', "would lose the secret value number 1"),
        ('password = "__RUNTIME_GATE_MASKED_2__"\n', "", "stands for no value of this file"),
        ("password = '__RUNTIME_GATE_MASKED_1__'\n", 'password = "abcd1234"\n', "would lose"),
        (
            'password = "__RUNTIME_GATE_MASKED_1__"\nb = \'__RUNTIME_GATE_MASKED_1__\'\n',
            'password = "abcd1234"\n',
            "stands for no value of this file, or was changed",
        ),
        ("a = 1\n", "password = {{ secret }}\n", "no readable TOML"),
    ],
)
def test_refused(edited: str, original: str, words: str) -> None:
    with pytest.raises(Withheld, match=words):
        Masker().put_back(edited, original)


def _registries(number: int) -> str:
    line = '[plugins."io.containerd.grpc.v1.cri".registry.configs."r%d.example".auth]\n  # of the team\n  password = "v4lue-%d"\n'
    return "".join(line % (one, one) for one in range(number))


def test_the_time_grows_with_the_text_and_not_faster() -> None:
    """Eight times the text, with a secret and a comment in each table: the square would be 64 times the time."""

    def seconds(number: int) -> float:
        text = _registries(number)
        started = time.process_time()
        masked = Masker().toml(text)
        assert Masker().put_back(masked, text) == text
        return time.process_time() - started

    seconds(10)
    assert seconds(4000) < 24 * seconds(500)
