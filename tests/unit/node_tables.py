# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of what must hold on every node, whatever its Python: run by pytest, and without it by run_node_code_under.py.

Python 3.8 and its standard library only.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import tempfile
import threading
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import (
    binaries,
    collect,
    cri,
    discovery,
    files,
    grpc_unary,
    hpack,
    kubelet,
    processes,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld

Check = t.Callable[[], None]

#: What stands for a secret in the tables: it must never be seen after masking.
SECRET = "hunter2-Zx9q"

# ---- toml_spans: text, [(kind, path, line, raw, decoded string)]
SCANS = [
    ("", []),
    ("\ufeff# only a comment\r\n", []),
    ("version = 2\n", [("value", ("version",), 1, "2", None)]),
    ("a = 'C:\\x'", [("value", ("a",), 1, "'C:\\x'", "C:\\x")]),
    ('"a.b" . c = "x\\ty" # end', [("value", ("a.b", "c"), 1, '"x\\ty"', "x\ty")]),
    ("'lit.key' = true", [("value", ("lit.key",), 1, "true", None)]),
    ('"q\\u0075ote" = 1', [("value", ("quote",), 1, "1", None)]),
    (
        "[a]\r\nb = 1\r\n\r\n[ a . 'c' ]\r\nd = \"e\"",
        [
            ("table", ("a",), 1, "[a]", None),
            ("value", ("a", "b"), 2, "1", None),
            ("table", ("a", "c"), 4, "[ a . 'c' ]", None),
            ("value", ("a", "c", "d"), 5, '"e"', "e"),
        ],
    ),
    (
        "[[a]]\nx = 1\n[a.b]\n[[a]]\n[[a.c]]\n[[a.c]]",
        [
            ("array_table", ("a", 0), 1, "[[a]]", None),
            ("value", ("a", 0, "x"), 2, "1", None),
            ("table", ("a", 0, "b"), 3, "[a.b]", None),
            ("array_table", ("a", 1), 4, "[[a]]", None),
            ("array_table", ("a", 1, "c", 0), 5, "[[a.c]]", None),
            ("array_table", ("a", 1, "c", 1), 6, "[[a.c]]", None),
        ],
    ),
    (
        "a = { b.c = 'x', d = [1, {e = \"f\"}] }",
        [
            ("value", ("a",), 1, "{ b.c = 'x', d = [1, {e = \"f\"}] }", None),
            ("value", ("a", "b", "c"), 1, "'x'", "x"),
            ("value", ("a", "d"), 1, '[1, {e = "f"}]', None),
            ("element", ("a", "d", 0), 1, "1", None),
            ("element", ("a", "d", 1), 1, '{e = "f"}', None),
            ("value", ("a", "d", 1, "e"), 1, '"f"', "f"),
        ],
    ),
    (
        "a = [ # one\n  'x', # two\n  'y',\n]\nb = []\nc = {}",
        [
            ("value", ("a",), 1, "[ # one\n  'x', # two\n  'y',\n]", None),
            ("element", ("a", 0), 2, "'x'", "x"),
            ("element", ("a", 1), 3, "'y'", "y"),
            ("value", ("b",), 5, "[]", None),
            ("value", ("c",), 6, "{}", None),
        ],
    ),
    (
        'a = """\nb"c\\\n   d""\\""""""\ne = 1',
        [("value", ("a",), 1, '"""\nb"c\\\n   d""\\""""""', 'b"cd"""""'), ("value", ("e",), 4, "1", None)],
    ),
    ("a = '''\r\n[x]\n'y'''''", [("value", ("a",), 1, "'''\r\n[x]\n'y'''''", "[x]\n'y''")]),
    (
        "a = \"\"\nb = ''\nc = \"\"\"\"\"\"",
        [
            ("value", ("a",), 1, '""', ""),
            ("value", ("b",), 2, "''", ""),
            ("value", ("c",), 3, '""""""', ""),
        ],
    ),
    (
        'a = "\\x41\\e\\U0001F600\\b\\f\\n\\r\\"\\\\"',
        [("value", ("a",), 1, '"\\x41\\e\\U0001F600\\b\\f\\n\\r\\"\\\\"', 'A\x1b\U0001f600\b\f\n\r"\\')],
    ),
    (
        "a = {\n b = 1, # note\n}",
        [("value", ("a",), 1, "{\n b = 1, # note\n}", None), ("value", ("a", "b"), 2, "1", None)],
    ),
]  # type: t.List[t.Tuple[str, t.List[t.Tuple[t.Any, ...]]]]

SCALARS = (
    "0 -17 +1_000 0xDEAD_beef 0o755 0b11 3.14 -1e-9 6.02E+23 inf -nan false 1979-05-27 1979-05-27T07:32:00Z 07:32:00 07:32"
).split() + ["1979-05-27 07:32:00.5-07:00"]

# text, line of the doubt
REFUSED = [
    ("a", 1),
    ("a = ", 1),
    ("\na = word", 2),
    ("a = 12abc", 1),
    ("a = 1 b = 2", 1),
    ("a = 'x' 'y'", 1),
    ("a = 'x\n'", 1),
    ('a = "x\n"', 1),
    ('\n\na = """x', 3),
    ("a = '''x", 1),
    ('a = """x""""""', 1),
    ('a = "\\q"', 1),
    ('a = "\\uD800"', 1),
    ('a = "\\U00110000"', 1),
    ('"\\q" = 1', 1),
    ("a = [1", 1),
    ("a = [1 2]", 1),
    ("a = [,]", 1),
    ("a = {b = 1", 1),
    ("a = {b}", 1),
    ("a = {b = 1 c = 2}", 1),
    ("[a", 1),
    ("[[a]", 1),
    ("[a] b = 1", 1),
    ("[]", 1),
    ("[a.]", 1),
    ("schl\xfcssel = 1", 1),
    ('{{ template "base" . }}', 1),
    ("a = 1\rb = 2", 1),
    ("# note\rpassword = 'x'", 1),
    ("a = 1\n\x00", 2),
    ("a = %s1%s" % ("[" * 100, "]" * 100), 1),
]


def _scan(text: str, expected: t.List[t.Any]) -> None:
    found = [(entry.kind, entry.path, entry.line, entry.raw, entry.string) for entry in toml_spans.scan(text)]
    assert found == expected, found


def _scalar(text: str) -> None:
    (entry,) = toml_spans.scan("a = %s # b" % text)
    assert (entry.form, entry.raw) == ("scalar", text)


def _refused(text: str, line: int) -> None:
    try:
        toml_spans.scan(text)
    except toml_spans.TomlScanError as error:
        assert error.line == line, error
        assert str(error).startswith("line %d: " % line)
    else:
        raise AssertionError("scanned: %r" % text)


# ---- secrets in TOML: text with SECRET somewhere, texts that must survive
_AUTH = '[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]\n'
PLANTED_TOML = [
    (_AUTH + 'username = "joe"\npassword = "%s"\n', ['username = "joe"', "password = "]),
    (_AUTH + "password = '%s'", []),
    (_AUTH + '"password" = "%s"', []),
    (_AUTH + "'password' = \"%s\"", []),
    (_AUTH + '"pass\\u0077ord" = "%s"', []),
    (_AUTH + 'password = """\n%s"""\n[next]\na = 1', ["[next]\na = 1"]),
    (_AUTH + "password = '''%s\nmore'''\n[next]\na = 1", ["[next]\na = 1"]),
    (_AUTH + 'password = "hunter2\\u002dZx9q"', []),
    (_AUTH + 'auth = "%s"', []),
    (_AUTH + 'identitytoken = "%s"', []),
    (_AUTH + 'some_new_key = "%s"', []),
    (_AUTH + 'list = ["%s", "x"]', []),
    ('[registry.configs]\n"r.example" = {auth = {username = "joe", password = "%s"}, tls.ca_file = "/ca"}', ["/ca", '"joe"']),
    ('registry.configs."r.example".auth.password = "%s"', []),
    ('registry . "configs" . r . auth . "password"="%s"', []),
    ('[r.a]\npassword = "%s" # a comment\nb = 1', ["# a comment", "b = 1"]),
    ('a = 1\r\npassword = "%s"\r\nb = 2\r\n', ["a = 1\r\n", "b = 2\r\n"]),
    ('\ufeffversion = 2\npassword = "%s"', ["\ufeffversion = 2"]),
    ('[[hosts]]\n[hosts.header]\n"X-Api" = ["%s"]', []),
    ('[host."https://r.example".header]\nAuthorization = "Basic %s"', ['host."https://r.example"']),
    ('[m."docker.io"]\nendpoint = ["https://joe:%s@m.example/v2"]', ["@m.example/v2", 'm."docker.io"']),
    ('[m."docker.io"]\nendpoint = ["https://%s@m.example/v2"]', ["@m.example/v2"]),
    ('endpoint = ["https://joe:%s\\u0040m.example"]', []),
    ('endpoint = """\nhttps://joe:%s@m.example"""', []),
    ('[mirrors."https://joe:%s@m.example"]\nendpoint = ["x"]', ['endpoint = ["x"]']),
    ('proxy = "joe:%s@proxy.example:3128"', ["@proxy.example:3128"]),
    ('http_proxy = "http://joe:pa ss%s@proxy.example"', []),
    ('env = ["HTTPS_PROXY=http://joe:%s@p.example", "LANG=C"]', ["LANG=C"]),
    ('env = ["K3S_TOKEN=%s"]', []),
    ('args = ["--verbose", "--token", "%s", "--next"]', ["--verbose", "--next"]),
    ('args = ["--token=%s"]', []),
    ('dsn = "host=db user=joe password=%s sslmode=off"', ["host=db", "sslmode=off"]),
    ('url = "https://r.example/p?sig=%s&x=1"', ["r.example/p", "x=1"]),
    ('x = "Bearer %s"', []),
    ('cert = """-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----"""', []),
    ('key = "%s"', []),
    ('tls_key = "%s"', []),
    ('clientKey = "%s"', []),
    ('api_key = "%s"\naccess-key = "%s"\nprivateKey = "%s"', []),
    ('credentials = {x = {y = "%s"}}', []),
    ('# password = "%s"\na = 1', ["a = 1"]),
    ('password = [ # %s\n "x" ]\na = 1', ["a = 1"]),
    ('password = "" # %s\na = 1 # plain', ["a = 1 # plain"]),
    ('#password="%s"', []),
    ("a = 1 # the password is %s", ["a = 1"]),
    ("# %s is the secret", []),
    ('# [r.auth]\n#   username = "joe"\n#   whatever = "%s"\n#\n# [runtimes.kata]\n# runtime_type = "x"', ["# [runtimes.kata]"]),
    ('# password = """\n# %s\n# """\na = 1', ["a = 1"]),
    ('# header = [\n#  "%s",\n# ]\na = 1', ["a = 1"]),
    ("# see https://joe:%s@m.example/", []),
    ('# -----BEGIN RSA PRIVATE KEY-----\n# %s\n# -----END', []),
    ("config = '{\"headers\": {\"X\": [\"%s\"]}}'", []),
    ("config = '{\"headers\": {broken \"%s\"'", []),
    ("config = '{\"a\": {\"auths\": {\"r\": {\"auth\": \"%s\"}}}}'", []),
    ('dsn = "AccountName=a;AccountKey=%s;EndpointSuffix=core"', ["AccountName=a", "EndpointSuffix=core"]),
    ('connection_string = "%s"', []),
    ('".dockerconfigjson" = "%s"', []),
    ('x = "eyJhdXRocyI6eyJyIjp7ImF1dGgiOiJ4In19fQ==%s"', []),
    ('url = "https://' + "x" * 5000 + ':%s@h"', []),
    ('runtimes.kata = {runtime_type = "io.containerd.kata.v2", env = {TOKEN = "%s"}}', ["io.containerd.kata.v2"]),
    # a header in one string
    ('args = ["curl", "-H", "Authorization: Bearer %s"]', ["curl", "Authorization: "]),
    ('args = ["-H", "Authorization: Basic %s"]', []),
    ('args = ["-H", "Authorization: token %s"]', []),
    ('cmd = "sh -c \'curl -H \\"Authorization: Bearer %s\\" https://r.example\'"', []),
    ('x = "Proxy-Authorization=Basic %s"', []),
    ('x = "authorization: Digest username=u, response=%s"', []),
    ('args = ["-H", "X-JFrog-Art-Api: %s"]', []),
    # a value with blanks
    ('x = "password: my %s x"', []),
    ("x = \"password: it's %s\"", []),
    ('x = "password = my %s x host = db"', ["host = db"]),
    # base64 may begin with a slash
    ('secret_key = "/%s/cd+EXAMPLE"\naccess_key = "/%s"\napi_key = "/%s"\nprivatekey = "/%s"', []),
    ('key = "/%s"\ntls_key = "/%s"\nclient_key = "/etc/k.key"', ["/etc/k.key"]),
    ('# password = "/%s"\n#  key = "/%s"', []),
    # comments
    ("# registry login, password below\n# %s\n[a]\nb = 1", ["[a]\nb = 1"]),
    ("# password:\n#\n#   %s\n# [runtimes.kata]", ["# [runtimes.kata]"]),
    ("# password =\n# %s", []),
    ('#  password = "" # %s\na = 1', ["a = 1"]),
    ("# curl -u admin:%s https://r.example", []),
    ("# user: admin  pw: %s", []),
    ("# pw=%s", []),
    ('# regpass = "%s"', []),
    ("# login admin/%s", []),
    ("# LS0tLS1CRUdJTiB\n#%s", []),
    # names
    ('pw = "%s"\nregistry_pw = "%s"\nregpass = "%s"\ndbpass = "%s"\nuserpass = "%s"', []),
    ('login = "admin:%s"', []),
    ('env = ["REG_PW=%s", "HARBORPASS=%s", "PATH=/bin"]', ["PATH=/bin"]),
    ('x = """\npw: %s\n"""', []),
    # arguments
    ('args = ["ctr", "pull", "-u", "admin:%s", "docker.io/x:1"]', ["docker.io/x:1"]),
    ('args = ["ctr", "--user", "admin:%s"]', []),
    ('args = ["curl", "--user=admin:%s"]', []),
    ('x = "--creds admin:%s --next"', ["--next"]),
    ('args = ["--pw", "%s", "--token", "--%s", "--next"]', ["--next"]),
    ('x = "agent --token %s --next"', ["--next"]),
    ('cmd = "k3s server -t %s --next"', ["--next"]),
    ('args = ["/usr/bin/k3s", "server", "-t", "%s"]', []),
    # content
    ('x = "https://b.s3.example/k?X-Amz-Date=1&X-Amz-Signature=%s"', ["X-Amz-Date=1"]),
    ('x = "https://g.example/b?GoogleAccessId=x&Signature=%s"', ["g.example/b"]),
    ('x = ["https://r.example/v2?key=%s", "https://r.example/v2?code=%s&n=1"]', ["n=1"]),
    ('endpoint = ["https://u%3A%s%40r.example/v2"]', ["r.example/v2"]),
    ('proxy = "u%3A%s%40r.example:3128"', ["r.example:3128"]),
    ('x = ["-----BEGIN PRIVATE KEY-----", "%s", "%s", "-----END PRIVATE KEY-----", "next"]', ["next"]),
    ('x = "admin:$2y$05$abcdefghijklmnopqrstuv%s"', []),
    ('x = "admin:$apr1$abcdefgh$0123456789%s"', []),
    ('x = "admin:{SHA}0123456789%s"', []),
    ('x = "https://hooks.slack.com/services/T0000/B0000/%s"', ["hooks.slack.com/services"]),
    ('x = "npm_0123456789abcdefghijABCDEFGHIJ"\ny = "sk-0123456789abcdefghij-%s"', ['y = "__RUNTIME_GATE_MASKED_2__"']),
    ('x = "nvapi-0123456789abcdefghij-%s"\ny = "hf_abcdefghijklmnopqrstuvwxyz"', ['y = "__RUNTIME_GATE_MASKED_2__"']),
    ('x = "AIzaSyA0123456789abcdefghi-%s"\ny = "dop_v1_0123456789abcdef0123456789abcdef"', ['y = "__RUNTIME_GATE_MASKED_2__"']),
    ('x = "glrt-0123456789abcdefghij-%s"\ny = "gldt-0123456789abcdefghij"', ['y = "__RUNTIME_GATE_MASKED_2__"']),
    ('x = "glpat-0123456789abcdefghij-%s"\ny = "ghp_0123456789abcdefghijABCDEF"\nz = "xoxb-0123456789-ab"',
     ['z = "__RUNTIME_GATE_MASKED_3__"']),
]  # type: t.List[t.Tuple[str, t.List[str]]]

#: No secret: these texts must come through as they are.
UNTOUCHED_TOML = [
    "",
    'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n',
    '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.token]\nruntime_type = "io.containerd.runc.v2"\n',
    'plugins.cri.containerd.runtimes.secret = {runtime_type = "x", options = {BinaryName = "/usr/bin/secret"}}',
    '[proxy_plugins.auth]\ntype = "snapshot"\naddress = "/run/auth.sock"',
    '[registry.configs."auth.example".tls]\nca_file = "/ca.pem"\nkey_file = "/key.pem"\ninsecure_skip_verify = true',
    '[m."docker.io"]\nendpoint = ["https://m.example:5000/v2"]',
    'sandbox = "registry.k8s.io/pause:3.9@sha256:%s"' % ("0" * 64),
    'password = ""\nauth = ""\ntoken = false',
    '# password = ""\n# token_file = "/run/token"\n',
    'key_model = "node"\ntls_key_file = "/x"\nnamespaced_auth_dir = "/etc/crio/auth"',
    '# File generated by k3s. DO NOT EDIT. Use config.toml.tmpl instead.\nversion = 3',
    'password = "__RUNTIME_GATE_MASKED_1__"\n# __RUNTIME_GATE_MASKED_2__\nendpoint = ["https://__RUNTIME_GATE_MASKED_3__@h"]',
    '[runtimes."a@b"]\nruntime_type = "x"',
    "x = '{\"a\": [1, \"b\"]}'\ny = '{{ x }}'",
    '[runtimes.pw.options]\nBinaryName = "/opt/token/bin/runc"\nConfigPath = "/etc/kata/configuration-pass.toml"',
    '[runtimes.login]\nruntime_type = "io.containerd.login.v2"\nruntime_path = "/usr/bin/containerd-shim-login-v2"',
    'args = ["--user", "1000:1000", "--authentication-token-webhook", "--config", "/c"]\nbypass = "yes"\nsignature_policy = "/p.json"',
    'tls_key = "/etc/ssl/tls.pem"\nclient_key = "/k.key"\n# tls_key = "/etc/ssl/tls.key"\n# runtime_path = "/opt/token/shim"\n',
    'path = "/usr/bin/ctd-decoder"\nargs = ["--decryption-keys-path", "/etc/containerd/ocicrypt/keys"]',
]

#: Cannot be scanned: withheld.
WITHHELD_TOML = [
    'password = %s' % SECRET,
    SECRET,
    SECRET + "\n",
    "joe:" + SECRET,
    'user = "joe"\n%s\n' % SECRET + "b = c d",
    '{{ if .Auth }}\n[x]\npassword = "{{ .Auth.Password }}"\n{{ end }}',
    'a = "https://joe:%s@m.example"\n[half' % SECRET,
    '[r.auth]\npassword = "%s' % SECRET,
    '{"auths": {"r.example": {"auth": "%s"}}}' % SECRET,
    "auths:\n  r.example: %s\n" % SECRET,
    "-----BEGIN PRIVATE KEY-----\n%s\n" % SECRET,
    'x = """\n%s\n' % SECRET,
    '"pass\\u0077ord" = "%s"\n[half' % SECRET,
    '[mirrors."https://joe:%s\\u0040m.example"]\na = 1' % SECRET,
    '{{ if x }}\n[a]\npw = "%s"\n{{ end }}' % SECRET,
    '{{ if x }}\n[a]\nregpass = "%s"\n{{ end }}' % SECRET,
    '{{ if x }}\n[a]\nlogin = "%s"\n{{ end }}' % SECRET,
    "REG=%s\n" % SECRET,
    "export REG=%s\n" % SECRET,
    "version=2\n{{/* robot account %s */}}\n[a]\nx = 1\n" % SECRET,
    "version=2\n{{- /* robot\n%s */ -}}\n[a]\nx = 1\n" % SECRET,
    "version=2\n{{/* the account of kata */}}\n[a]\nx = 1\n",
]

#: Cannot be scanned, and still harmless with certainty.
HARMLESS = [
    '{{ template "base" . }}\n\n[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.kata]\n  runtime_type = "x"\n',
    'version = 2\n[plugins."io.containerd.gr',
    'version = 2\nimports = ["/etc/x/*.toml",\n  "/etc/y/*.toml"\n',
    "version = two\n",
    "[plugins.cri\nb = 1",
    '{{/* Template of our nodes, version 1.2 */}}\nversion = 2\nimports = ["/etc/x/*.toml"]\n{{ if x }}\n[a]\nb = 1\n',
]


def _planted(template: str, survivors: t.List[str]) -> None:
    text = template.replace("%s", SECRET)
    masked = Masker().toml(text)
    assert SECRET not in masked and "Zx9q" not in masked, masked
    assert masked.count("\n") == text.count("\n"), masked
    for survivor in survivors:
        assert survivor in masked, masked
    toml_spans.scan(masked)
    assert Masker().toml(masked) == masked
    numbers = [int(number) for number in re.findall(r"__RUNTIME_GATE_MASKED_(\d+)__", masked)]
    assert numbers == list(range(1, len(numbers) + 1)) and numbers, masked


def _half_written(template: str) -> None:
    """A text that is being written: wherever it is cut off, what is there of the secret is not seen."""
    text = template.replace("%s", SECRET)
    start = text.find(SECRET)
    for end in range(max(start, 0) + 6, len(text)):
        try:
            masked = Masker().toml(text[:end])
        except Withheld:
            continue
        assert SECRET[:6] not in masked, masked


def _untouched(text: str) -> None:
    assert Masker().toml(text) == text


def _withheld(text: str) -> None:
    try:
        masked = Masker().toml(text)
    except Withheld as error:
        assert SECRET not in str(error)
    else:
        raise AssertionError("let through: %r" % masked)


def _harmless(text: str) -> None:
    assert Masker().toml(text) == text


# ---- secrets in JSON: value with SECRET in it, texts that must survive
PLANTED_JSON = [
    ({"config": {"registry": {"configs": {"r.example": {"auth": {"username": "joe", "password": SECRET}}}}}}, ["joe"]),
    ({"config": {"registry": {"auths": {"r.example": {"auth": SECRET}}}}}, ["r.example"]),
    ({"config": {"headers": {"X-Any": [SECRET]}}}, ["X-Any"]),
    ({"config": {"mirrors": {"docker.io": {"endpoint": ["https://joe:%s@m.example" % SECRET]}}}}, ["@m.example"]),
    ({"config": {"mirrors": {"https://joe:%s@m.example" % SECRET: {}}}}, ["@m.example"]),
    ({"cniconfig": {"Networks": [{"Config": {"Source": json.dumps({"type": "x", "k8s_auth_token": SECRET})}}]}}, ["type"]),
    ({"cniconfig": {"Source": "{ broken password: " + SECRET}}, []),
    ({"status": {"conditions": [{"message": "proxy http://joe:%s@p failed" % SECRET}]}}, ["failed"]),
    ([{"a": 1}, "http://joe:%s@h" % SECRET], ["http://"]),
    ({"args": ["--token", SECRET, "--x"]}, ["--x"]),
    ({"env": ["K3S_TOKEN=" + SECRET, "LANG=C"]}, ["LANG=C"]),
    ({"lastError": "failed: Authorization: Bearer " + SECRET}, ["failed: "]),
    ({"args": ["-H", "Authorization: Basic " + SECRET, "-u", "joe:" + SECRET, "next"]}, ["next"]),
    ({"exports": {"secret_key": "/" + SECRET, "tls_key": "/etc/tls.pem"}}, ["/etc/tls.pem"]),
    ({"lines": ["-----BEGIN PRIVATE KEY-----", SECRET, "-----END PRIVATE KEY-----", "next"]}, ["next"]),
    ({"config": {"token": 12345678, "containerd": {"runtimes": {"token": {"runtimeType": "x"}}}}}, ["runtimeType", '"x"']),
]  # type: t.List[t.Tuple[t.Any, t.List[str]]]


def _planted_json(value: t.Any, survivors: t.List[str]) -> None:
    masked = json.dumps(Masker().json(value))
    assert SECRET not in masked and "12345678" not in masked, masked
    assert "__RUNTIME_GATE_MASKED_1__" in masked
    for survivor in survivors:
        assert survivor in masked, masked
    again = json.dumps(Masker().json(json.loads(masked)))
    assert again == masked, again


# ---- secrets in command lines: words, words after masking (* is a placeholder)
COMMANDS = [
    (["k3s", "agent", "--token", "S3CR3T", "--node-name", "a"], "k3s agent --token * --node-name a"),
    (["k3s", "agent", "--token=S3CR3T"], "k3s agent --token=*"),
    (["/usr/local/bin/k3s", "server", "-t", "S3CR3T"], "/usr/local/bin/k3s server -t *"),
    (["containerd", "-t", "x"], "containerd -t x"),
    (["k3s", "--agent-token", "S3CR3T", "--agent-token-file=/t"], "k3s --agent-token * --agent-token-file=*"),
    (["k3s", "--datastore-endpoint", "mysql://u:p@tcp(db)/k"], "k3s --datastore-endpoint *"),
    (["k3s", "--datastore-endpoint=postgres://u:p@db/k"], "k3s --datastore-endpoint=*"),
    (["k3s", "--etcd-s3-secret-key", "S3CR3T", "--etcd-s3-access-key=S3CR3T"], "k3s --etcd-s3-secret-key * --etcd-s3-access-key=*"),
    (["kubelet", "--authentication-token-webhook", "--config", "/c"], "kubelet --authentication-token-webhook --config /c"),
    (["kubelet", "--authentication-token-webhook=true"], "kubelet --authentication-token-webhook=true"),
    (["env", "K3S_TOKEN=S3CR3T", "HTTPS_PROXY=http://u:p@h:1", "A=b"], "env K3S_TOKEN=* HTTPS_PROXY=http://*@h:1 A=b"),
    (["x", "--proxy", "http://u:p@h:1"], "x --proxy http://*@h:1"),
    (["sh", "-c", "exec k3s --token S3CR3T --x"], "sh -c exec k3s --token * --x"),
    (["containerd", "-c", "/etc/containerd/config.toml"], "containerd -c /etc/containerd/config.toml"),
    (["x", "--token", ""], "x --token "),
    (["x", "--token"], "x --token"),
    (["x", "-u", "admin:S3CR3T", "--user", "u:S3CR3T", "--creds=u:S3CR3T"], "x -u * --user * --creds=*"),
    (["x", "-u", "1000:1000", "--user", "65534"], "x -u 1000:1000 --user 65534"),
    (["x", "--pw", "S3CR3T", "--regpass=S3CR3T", "--token", "--S3CR3T"], "x --pw * --regpass=* --token *"),
    (["sh", "-c", 'curl -H "Authorization: Bearer S3CR3T" x'], 'sh -c curl -H "Authorization: *" x'),
    (["sh", "-c", "k3s server -t S3CR3T --x"], "sh -c k3s server -t * --x"),
    (["env", "REG_PW=S3CR3T", "HARBORPASS=S3CR3T"], "env REG_PW=* HARBORPASS=*"),
    (["sh", "-c", "exec env K3S_TOKEN=S3CR3T k3s agent"], "sh -c exec env K3S_TOKEN=* k3s agent"),
]


def _masked_words(text: str) -> str:
    return re.sub(r"__RUNTIME_GATE_MASKED_\d+__", "*", text)


def _command(words: t.List[str], expected: str) -> None:
    assert _masked_words(" ".join(Masker().command(words))) == expected, Masker().command(words)


def _command_line() -> None:
    text = "{ path=/bin/k3s ; argv[]=/bin/k3s  agent --token 'a b' --x=\"c d\" $ARGS ; }"
    expected = "{ path=/bin/k3s ; argv[]=/bin/k3s  agent --token * --x=\"c d\" $ARGS ; }"
    assert _masked_words(Masker().command_line(text)) == expected, Masker().command_line(text)


def _messages() -> None:
    masker = Masker()
    masker.toml('password = "%s"\n' % SECRET)
    log = 'level=warning msg="Ignoring unknown key in TOML for plugin" key=password plugin=io.containerd.grpc.v1.cri'
    assert masker.text(log) == log
    assert SECRET not in masker.text("near %s in line 1" % SECRET)
    assert SECRET not in masker.text("dial http://joe:%s@h: refused" % SECRET)
    for scheme in ("Bearer", "Basic", "token"):
        log = 'level=error msg="auth: %s x%sx" plugin=a' % (scheme, SECRET[::-1])
        assert _masked_words(Masker().text(log)) == 'level=error msg="auth: *" plugin=a', Masker().text(log)
    try:
        masker.toml("password = other-%s" % SECRET)
    except Withheld:
        quoted = 'containerd: failed to load TOML: /etc/c.toml: (2, 12): no value can start with "x%sx", "/etc/c.toml"' % "Q"
        assert masker.text(quoted).endswith('no value can start with "(withheld)", "/etc/c.toml"'), masker.text(quoted)
        assert SECRET not in masker.text("invalid key: other-%s" % SECRET)
        return
    raise AssertionError("let through")


def _regular_expressions_are_not_slow() -> None:
    # Each would take minutes if its length counted twice.
    for text in ("://", "auth", "a:", "bearer ", "eyJ", "-----BEGIN ", "K10", "LS0tLS1CRUdJTi", "x@sha256:", "apikey", "k3s ", "x%3a", "pw ", "pw: ",
                 "pw:x ", "pw = x ", "-u ", "--token ", "x-", "?key", "login"):  # fmt: skip
        began = time.process_time()
        Masker().text(text * (200000 // len(text)))
        Masker().text("https://" + text * (200000 // len(text)))
        assert time.process_time() - began < 10, text
    for text in ("{{", "[", "a = '", "# passw", '"', "a.", "a={", "{{/*", "{{/* a */}} "):
        began = time.process_time()
        try:
            Masker().toml(text * (200000 // len(text)))
        except Withheld:
            pass
        assert time.process_time() - began < 10, text


# ---- HPACK (RFC 7541, appendix C.4, C.6 and 5.1)
HUFFMAN = [
    ("f1e3c2e5f23a6ba0ab90f4ff", b"www.example.com"),
    ("a8eb10649cbf", b"no-cache"),
    ("aec3771a4b", b"private"),
    ("d07abe941054d444a8200595040b8166e082a62d1bff", b"Mon, 21 Oct 2013 20:13:21 GMT"),
]
HUFFMAN_REFUSED = ["00", "fffffffc", "ffffffff"]
HEADER_BLOCKS = [
    # blocks of one connection -> headers of each
    (["8286841f0f0131"[:6]], [[(":method", "GET"), (":scheme", "http"), (":path", "/")]]),
    (["400a637573746f6d2d6b65790d637573746f6d2d686561646572", "be"],
     [[("custom-key", "custom-header")], [("custom-key", "custom-header")]]),
    (["040c2f73616d706c652f70617468"], [[(":path", "/sample/path")]]),
    (["100870617373776f726406736563726574"], [[("password", "secret")]]),
    (["20"], [[]]),
]  # fmt: skip
BLOCKS_REFUSED = ["80", "ff80808080808080", "be", "40", "4005", "3fe2ffff7f"]


def _huffman(coded: str, expected: bytes) -> None:
    assert hpack.huffman_decode(bytes.fromhex(coded)) == expected


def _raises(kind: t.Type[Exception], function: t.Callable[..., t.Any], *arguments: t.Any) -> Exception:
    try:
        function(*arguments)
    except kind as error:
        return error
    raise AssertionError("no %s from %r" % (kind.__name__, arguments))


def _blocks(blocks: t.List[str], expected: t.List[t.Any]) -> None:
    decoder = hpack.Decoder()
    assert [decoder.decode(bytes.fromhex(block)) for block in blocks] == expected


def _hpack_round() -> None:
    headers = [(":path", "/x"), ("long", "v" * 300), ("longer", "w" * 20000)]
    assert hpack.Decoder().decode(hpack.encode(headers)) == headers


# ---- protobuf
def message(*fields: t.Tuple[int, t.Any]) -> bytes:
    """A protobuf message of ints, texts and messages."""
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += varint(number << 3) + varint(int(value))
        else:
            data = value.encode() if isinstance(value, str) else value
            encoded += varint(number << 3 | 2) + varint(len(data)) + data
    return encoded


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    encoded.append(number)
    return bytes(encoded)


STATUS = message(
    (1, message((1, message((1, "RuntimeReady"), (2, 1))), (1, message((1, "NetworkReady"), (3, "r"), (4, "m"))))),
    (2, message((1, "config"), (2, '{"containerd": {"runtimes": {}}}'))),
    (2, message((1, "lastCNILoadStatus"), (2, "OK"))),
    (3, message((2, message((1, 1))))),
    (3, message((1, "kata"))),
    (3, message((1, "runc"), (2, message((1, 1), (2, 0))))),
    (4, message((1, 1))),
    (99, "unknown"),
)
INFO = {
    "status": {
        "conditions": [
            {"type": "RuntimeReady", "status": True, "reason": "", "message": ""},
            {"type": "NetworkReady", "status": False, "reason": "r", "message": "m"},
        ]
    },
    "config": {"containerd": {"runtimes": {}}},
    "lastCNILoadStatus": "OK",
    "runtimeHandlers": [
        {"features": {"recursive_read_only_mounts": True}},
        {"name": "kata"},
        {"name": "runc", "features": {"recursive_read_only_mounts": True}},
    ],
    "features": {"supplemental_groups_policy": True},
}
NOT_PROTOBUF = [b"", b"\xff", b"\x00", b"\x0a\x05ab", b"\x0b", b"\x0a\x01\x80", b"\x08\x01", b"\x1a\x02\x0a\x00\x1a\x01\x08",
                b"\x12\x02\x08\x01\x0a\x00", b"\x12\x04\x0a\x02\xff\xfe\x0a\x00"]  # fmt: skip


def _status() -> None:
    assert cri.decode_status(STATUS) == INFO
    fixed = b"\x49" + b"\0" * 8 + b"\x4d" + b"\0" * 4
    assert cri.decode_status(STATUS + fixed) == INFO
    assert cri.decode_version(message((1, "0.1.0"), (2, "containerd"), (3, "v2"))) == ("containerd", "v2")


# ---- small ones
OPTIONS = [
    (["containerd", "-c", "/x"], "/x"),
    (["containerd", "--config", "/x"], "/x"),
    (["containerd", "--config=/x"], "/x"),
    (["containerd", "-config=/x"], "/x"),
    (["containerd", "-c=/y", "--config", "/x"], "/x"),
    (["containerd", "--log-level", "debug"], None),
    (["containerd", "-c"], None),
    (["containerd"], None),
]  # type: t.List[t.Tuple[t.List[str], t.Optional[str]]]

SHIMS = [
    ("io.containerd.runc.v2", ["containerd-shim-runc-v2"]),
    ("io.containerd.kata-qemu.v2", ["containerd-shim-kata-qemu-v2"]),
    ("io.containerd.runtime.v1.linux", ["containerd-shim-v1-linux", "containerd-shim"]),
    ("/opt/kata/bin/containerd-shim-kata-v2", ["/opt/kata/bin/containerd-shim-kata-v2"]),
    ("kata", []),
    ("", []),
    ("a/b.c", []),
    ("a..", []),
]

IMPORTS = [
    ('imports = ["/a/*.toml", \'b.toml\']', ["/a/*.toml", "b.toml"]),
    ('includes = ["/a/*.toml"]', ["/a/*.toml"]),
    ('[x]\nimports = ["a"]', ["a"]),
    ('imports = "a"', ["a"]),
    ('version = two\nimports = ["a",\n \'b\'', ["a", "b"]),
    ("version = 2", []),
    ('a = {{ x }}\nimport = "z"', ["z"]),
]

DECODED = [
    (b"a = 1", "a = 1", None),
    (b"\xef\xbb\xbfa = 1\r\n", "\ufeffa = 1\r\n", None),
    (b"\xff\xfea\x00", None, "UTF-16"),
    (b"\xfe\xff\x00a", None, "UTF-16"),
    (b"a\xff", None, "no UTF-8 (byte 1)"),
    (b"a\x00\x00", None, "NUL"),
]  # type: t.List[t.Tuple[bytes, t.Optional[str], t.Optional[str]]]

YAML_VALUES = [
    (b"a: b\ncontainerRuntimeEndpoint: unix:///x\n", "unix:///x"),
    (b'containerRuntimeEndpoint: "unix:///x" # why\r\n', "unix:///x"),
    (b"'containerRuntimeEndpoint' :   'unix:///x'", "unix:///x"),
    (b'{"containerRuntimeEndpoint": "unix:///x"}', "unix:///x"),
    (b'{"containerRuntimeEndpoint": 1}', None),
    (b"[1]", None),
    (b"{broken", None),
    (b" containerRuntimeEndpoint: unix:///nested\n#containerRuntimeEndpoint: unix:///no", None),
    (b"containerRuntimeEndpoint:\n", None),
]  # type: t.List[t.Tuple[bytes, t.Optional[str]]]

ENDPOINTS = [
    ("unix:///run/c.sock", "/run/c.sock"),
    ("unix:/run/c.sock", "/run/c.sock"),
    ("/run/c.sock", "/run/c.sock"),
    ("tcp://1.2.3.4:5", None),
    ("npipe:////./pipe/x", None),
    ("", None),
    (None, None),
]  # type: t.List[t.Tuple[t.Optional[str], t.Optional[str]]]


def _equal(function: t.Callable[..., t.Any], arguments: t.Tuple[t.Any, ...], expected: t.Any) -> None:
    found = function(*arguments)
    assert found == expected, found


def _decoded(data: bytes, text: t.Optional[str], reason: t.Optional[str]) -> None:
    found = files.decode(data)
    assert found[0] == text and (reason is None or reason in (found[1] or "")), found


def _unit() -> None:
    text = (
        "Id=containerd.service\nLoadState=loaded\nActiveState=active\nFragmentPath=/lib/systemd/system/containerd.service\n"
        "DropInPaths=/etc/systemd/system/containerd.service.d/a.conf /run/b.conf\nKillMode=process\nNeedDaemonReload=yes\n"
        "ExecStart={ path=/usr/bin/containerd ; argv[]=/usr/bin/containerd -c /x ; ignore_errors=no ; pid=1 }\n"
        "ExecReload={ path=/bin/kill ; start_time=[n/a] }\nEnvironment=A=1 \"B=2 3\"\n"
        "EnvironmentFiles=/etc/sysconfig/a (ignore_errors=yes)\nEnvironmentFiles=/etc/b c (ignore_errors=no)\n"
    )
    assert discovery.parse_unit(text) == {
        "name": "containerd.service",
        "state": "active",
        "fragment": "/lib/systemd/system/containerd.service",
        "drop_ins": ["/etc/systemd/system/containerd.service.d/a.conf", "/run/b.conf"],
        "exec_start": "/usr/bin/containerd -c /x",
        "kill_mode": "process",
        "need_daemon_reload": True,
        "exec_reload": "{ path=/bin/kill ; start_time=[n/a] }",
        "environment": 'A=1 "B=2 3"',
        "environment_files": ["/etc/sysconfig/a", "/etc/b c"],
    }
    assert discovery.parse_unit("Id=x.service\nLoadState=not-found\n") is None
    assert discovery.parse_unit("") is None


def _binaries() -> None:
    texts = ['runtime_type = "io.containerd.kata.v2"\nBinaryName = \'/usr/bin/crun\'', '{"runtimeType": "a.b", "runtimePath": "x"}']
    assert binaries.wanted(texts) == ["/usr/bin/crun", "containerd-shim-a-b", "containerd-shim-kata-v2", "runc", "x"]
    with tempfile.TemporaryDirectory() as directory:
        for name, mode in (("runc", 0o755), ("plain", 0o644)):
            with open(os.path.join(directory, name), "w") as file:
                os.fchmod(file.fileno(), mode)
        names = ["runc", "plain", "absent", directory + "/runc", directory + "/none"]
        found = binaries.look_up(names, "/nowhere:" + directory, "/nowhere/containerd", None, "")
        assert found == {
            "runc": True, directory + "/runc": True, "plain": False, "absent": False, directory + "/none": False,
        }  # fmt: skip


# ---- a server that answers as told
class FakeServer:
    """Listens on a unix socket and plays one script: what it sends once a connection is there.

    :ivar received: what clients sent.
    """

    def __init__(self, *scripts: t.Callable[[socket.socket], None]) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "s.sock")
        self.received = b""
        self._scripts = scripts
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        for script in self._scripts:
            try:
                connection, _address = self._listener.accept()
            except OSError:
                return
            with connection:
                try:
                    self.received += connection.recv(65536)
                    script(connection)
                except OSError:
                    continue

    def __enter__(self) -> "FakeServer":
        return self

    def __exit__(self, *_exception: t.Any) -> None:
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._thread.join(5)
        self.directory.cleanup()


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


SETTINGS_FRAME = frame(4, 0, 0, b"")
OK_HEADERS = frame(1, 4, 1, hpack.encode([(":status", "200"), ("content-type", "application/grpc")]))


def trailers(code: int, text: str = "") -> bytes:
    return frame(1, 5, 1, hpack.encode([("grpc-status", str(code)), ("grpc-message", text)]))


def grpc_answer(payload: bytes, size: int = 16384) -> t.Callable[[socket.socket], None]:
    """A script: one message, in frames of a size."""
    body = struct.pack(">BI", 0, len(payload)) + payload
    frames = b"".join(frame(0, 0, 1, body[i : i + size]) for i in range(0, len(body), size))
    return lambda connection: connection.sendall(SETTINGS_FRAME + OK_HEADERS + frames + trailers(0))


def sends(data: bytes, then_wait: float = 0) -> t.Callable[[socket.socket], None]:
    """A script: these bytes, then silence for some seconds, then the connection is closed."""

    def script(connection: socket.socket) -> None:
        connection.sendall(data)
        if then_wait:
            connection.settimeout(then_wait)
            try:
                while connection.recv(65536):
                    pass
            except OSError:
                pass

    return script


def _served() -> None:
    with FakeServer(grpc_answer(STATUS), grpc_answer(message((2, "containerd"), (3, "v2.1.9")))) as server:
        answer = cri.ask(server.path, 5)
    assert (answer.api_version, answer.runtime_name, answer.runtime_version) == ("v1", "containerd", "v2.1.9")
    assert answer.info == INFO


def _hangs() -> None:
    with FakeServer(sends(SETTINGS_FRAME, 2)) as server:
        error = _raises(grpc_unary.NoAnswer, cri.ask, server.path, 0.2)
    assert error.kind == "timeout" and "0.2 s" in str(error), error


def _collects() -> None:
    capture = json.loads(json.dumps(collect.collect({"timeout": 2.0})))
    assert capture["format"] == 1 and capture["node"]["problems"] == [], capture["node"]["problems"]
    assert capture["node"]["cri_state"] in ("served", "not_running", "undetermined", "unimplemented")


def checks() -> t.List[t.Tuple[str, Check]]:
    """Every check with a name, each row of a table on its own."""
    found: t.List[t.Tuple[str, Check]] = []

    def add(name: str, function: t.Callable[..., None], rows: t.Iterable[t.Tuple[t.Any, ...]] = ((),)) -> None:
        for number, row in enumerate(rows):
            found.append(("%s[%d]" % (name, number), lambda function=function, row=row: function(*row)))  # type: ignore

    add("scan", _scan, SCANS)
    add("scalar", _scalar, [(text,) for text in SCALARS])
    add("refused", _refused, REFUSED)
    add("planted", _planted, PLANTED_TOML)
    # Where the word that tells stands behind the secret, nothing can tell before it is written.
    before = [(text,) for text, _survivors in PLANTED_TOML if len(text) < 1000 and not text.startswith("# %s")]
    add("half_written", _half_written, before)
    add("untouched", _untouched, [(text,) for text in UNTOUCHED_TOML])
    add("withheld", _withheld, [(text,) for text in WITHHELD_TOML])
    add("harmless", _harmless, [(text,) for text in HARMLESS])
    add("planted_json", _planted_json, PLANTED_JSON)
    add("command", _command, COMMANDS)
    add("command_line", _command_line)
    add("messages", _messages)
    add("slow", _regular_expressions_are_not_slow)
    add("huffman", _huffman, HUFFMAN)
    add("huffman_refused", _raises, [(hpack.HpackError, hpack.huffman_decode, bytes.fromhex(row)) for row in HUFFMAN_REFUSED])  # type: ignore
    add("blocks", _blocks, HEADER_BLOCKS)
    add("blocks_refused", _raises, [(hpack.HpackError, hpack.Decoder().decode, bytes.fromhex(row)) for row in BLOCKS_REFUSED])  # type: ignore
    add("hpack_round", _hpack_round)
    add("status", _status)
    add("not_protobuf", _raises, [(cri.NotProtobuf, cri.decode_status, row) for row in NOT_PROTOBUF])  # type: ignore
    add("option", _equal, [(processes.option, (argv, "c", "config"), value) for argv, value in OPTIONS])
    add("shims", _equal, [(binaries.shims, (name,), value) for name, value in SHIMS])
    add("imports", _equal, [(files.import_patterns, (text,), value) for text, value in IMPORTS])
    add("decoded", _decoded, DECODED)
    add("yaml", _equal, [(kubelet._yaml_value, (text, "containerRuntimeEndpoint"), value) for text, value in YAML_VALUES])
    add("endpoint", _equal, [(kubelet.socket_path, (text,), value) for text, value in ENDPOINTS])
    add("unit", _unit)
    add("binaries", _binaries)
    add("served", _served)
    add("hangs", _hangs)
    add("collects", _collects)
    return found
