# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets stay on the node: every text is masked here before it leaves, and a text in doubt is withheld.

A secret is recognised in two ways: by the *name* of its key, option or variable, and by its *content* (credentials in
a URL, PEM blocks, bearer tokens, tokens of well-known shape). It is replaced by ``__RUNTIME_GATE_MASKED_<n>__``, n
counted from 1 in file order. Tables, keys, handler names and line numbers are kept: the explanation needs them.

After masking, a TOML text is scanned again and must be free of secrets with the same keys as before; otherwise it is
withheld. A text that cannot be scanned at all (a Go template, a half-written file) is withheld too, unless
:func:`is_harmless` holds. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import functools
import json
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.toml_spans import (
    Document,
    Entry,
    Path,
    TomlScanError,
    scan_document,
)


class _Late:
    """A pattern that is compiled when it is first used. Most nodes need a few of them, and to compile them all took longer than to mask
    what such a node has."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._pattern, self._flags = pattern, flags

    def __getattr__(self, name: str) -> t.Any:
        compiled = re.compile(self._pattern, self._flags)
        self.__dict__.update((method, getattr(compiled, method)) for method in ("findall", "finditer", "fullmatch", "match", "search", "split", "sub"))
        return getattr(compiled, name)


PLACEHOLDER = re.compile(r"__RUNTIME_GATE_MASKED_([0-9]+)__")
Span = t.Tuple[int, int]
_Known = t.Dict[str, bool]

# Names. Compared in lower case without separators, so that identity_token, identityToken and IDENTITY-TOKEN are one.
# "author" and "authority" are no secrets, "authorization" is.
_SECRET_WORDS = (
    r"passw|passphrase|passcode|pwd|secret|token|credential|auth(?!or(?!i[sz]))|apikey|accesskey|privatekey|joinkey"
    r"|bearer|cookie|header|dockerconfig|connectionstring|datastoreendpoint|signature$|(?<!by)(?<!com)pass$|pw$"
)
_SECRET_NAME = re.compile(_SECRET_WORDS)
_SECRET_WORD = re.compile(r"(?:^|[^a-z0-9])(?:pass|pw|creds?|pat|psk|sas|sig|jwt|login)(?:$|[^a-z0-9])")
_KEY_NAME = re.compile(r"(?:^|[^a-z0-9]|[a-z0-9](?=K))keys?$", re.IGNORECASE)
_PATH_NAME = re.compile(r"(?:files?|dirs?|paths?)$", re.IGNORECASE)
# A value of `tls_key` that is the path of a file: base64 may begin with a slash, too.
_KEY_FILE = _Late(
    r"/(?:[\w.@-]+/)*[\w.@-]+\.(?:pem|key|crt)\Z|/(?:etc|var|run|usr|opt|srv|home|root|mnt)/[\w.@/-]+\Z"
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")
# The children of these tables are named by people: [runtimes.token] is a handler, not a token.
_NAMING_TABLES = frozenset(("runtimes", "proxy_plugins", "stream_processors"))
# A registry, an URL or a plugin id, whatever words are in it: [configs."auth.example"], [plugins."io.containerd.x.v1.auth"].
_FOREIGN_NAME = re.compile(r"[./:]")
_PLAIN_VALUES = frozenset(("", "true", "false", "null", "none"))

# Content. The named group is what is masked. Repetitions that a failing match would try again from each place are bounded.
_CONTENT = _Late(
    # user information of a URL, up to the last @ of the word (a password may hold one)
    r"""://(?P<url>[^\s"'`]{1,2000})@"""
    # a proxy without scheme, user:password@host, but not an image digest name:tag@sha256:...
    r"""|(?<![^\s"'`=,(])(?P<bare>[^\s:/@"'`=,]{1,200}:[^\s@/"'`]{1,500})@(?!sha[0-9]+:)(?=[\w.\[])"""
    # ... or one whose colon and @ are written as in a query
    r"""|://(?P<quoted>[^\s"'`/?#@]{1,1000})%40|(?<![^\s"'`=,(])(?P<quotedbare>[^\s:/@"'`=,%]{1,200}%3[aA][^\s@/"'`%]{1,500})%40"""
    # name=value and name: value inside a longer text (a DSN, a query, a header, a log line); a lone `key=` is
    # containerd's own. A value after a colon goes on to the end of the line, one after "=" and a blank to the next name.
    r"""|(?i:(?:passw|passphrase|passcode|secret|token|credential|[a-z0-9]{1,30}[_-]?key\b|auth)[\w.-]{0,100}"""
    r"""|(?<!by)(?<!com)pass|pwd|pw|\bsig|signature|\blogin|\bx-[a-z0-9-]{1,60}(?=:))["'\\]{0,8}\s{0,20}"""
    r"""(?:=(?P<named>\s{0,20}(?:\\?"(?:[^"\\]|\\.)*"?|'[^']*'?)|(?i:(?:bearer|basic|token|digest|negotiate|ntlm)\s{1,20})?[^\s"'&;,}]+"""
    r"""|\s{1,20}[^\s"'&;,}]+(?:[ \t]{1,20}(?![^\s"'=]{1,100}[ \t]{0,20}=)[^\s"'&;,}]+)*)"""
    r"""|:\s{0,20}(?P<told>\\?"(?:[^"\\]|\\.)*"?|'[^'\n]*'(?=[\s,;}\])]|\Z)|(?:[^\s"]|"(?![\s,;}\])]|\Z))(?:[^\n"]|"(?![\s,;}\])]|\Z))*))"""
    r"""|\b(?i:bearer|basic|negotiate)\s+(?P<scheme>[A-Za-z0-9._~+/=-]{6,})"""
    r"""|[?&](?i:[\w.-]{0,60}(?:key|code|access|sig|signature))=(?P<query>[^\s"'&]+)"""
    # options of a command line: user:password (but not uid:gid), a token, k3s's own -t
    r"""|(?<![\w-])(?:-u|--user|--username|--creds?)[\s=]{1,20}["']?(?!\d+:\d+(?:[\s"']|\Z))(?P<login>[^\s:"'/]{1,200}:[^\s"']+)"""
    r"""|(?<![\w-])--?(?i:[\w-]{0,40}(?:passw|passphrase|secret|token|credential|creds|api-?key|pass|pw)[\w-]{0,40})\s{1,20}"""
    r"""(?P<option>"[^"]*"?|'[^']*'?|[^\s"'-][^\s"']*)"""
    r"""|\b(?:k3s|rke2)\b[^\n]{0,200}?\s-t[\s=]{1,20}(?P<join>[^\s"']+)"""
    r"""|\bhooks\.slack\.com/(?:services|workflows|triggers)/(?P<hook>[^\s"']+)"""
    r"""|(?P<hash>\$(?:apr1|2[abxy]|[156y])\$[^\s"']{8,}|\{S?SHA[0-9]{0,3}\}[^\s"']{8,})"""
    r"""|(?P<pem>-----BEGIN[\s\S]*?(?:-----END[^-]*-----|\Z))"""
    r"""|(?P<pem64>LS0tLS1CRUdJTi[A-Za-z0-9+/=\s]*)"""
    # web tokens (and any other JSON in base64), tokens of GitHub, GitLab, Docker Hub, Slack, AWS, Vault, npm, NVIDIA,
    # Hugging Face, Google, DigitalOcean, k3s, kubeadm
    r"""|\b(?P<shape>eyJ[A-Za-z0-9+/=_.-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|gl[a-z]{2,5}-[\w-]{16,}"""
    r"""|dckr_pat_[\w-]{16,}|xox[abprs]-[\w-]{10,}|A[KS]IA[A-Z0-9]{16}|hv[sb]\.[\w-]{20,}|K10[0-9a-f]{16,}::\S+"""
    r"""|npm_\w{20,}|nvapi-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|AIza[\w-]{20,}|do[opr]_v1_\w{20,}|(?<![\w.-]{2})sk-[\w-]{20,}"""
    r"""|[a-z0-9]{6}\.[a-z0-9]{16}\b)"""
)
_SHAPES = (
    r"eyJ|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|dckr_pat_|xox|A[KS]IA|hv[sb]\.|K10|npm_|nvapi-|hf_|AIza|do[opr]_v1_|\bsk-"
    r"|\$(?:apr1|2[abxy]|[156y])\$|\{S?SHA|hooks\.slack"
)
# What _CONTENT needs to match at all; most strings have none of it.
_CONTENT_HINT = re.compile(
    r"@|%40|-----BEGIN|LS0tLS1CRUdJTi|(?i:bearer|basic|negotiate)\s|(?i:pass|pw|secret|token|cred|key\b|api-?key|auth|sig|login|code|access|\bx-)"
    r"|-u|--user|\s-t|\b[a-z0-9]{6}\.[a-z0-9]{16}\b|" + _SHAPES
)
_KEY_HINT = re.compile(r"@|%40|-----BEGIN|LS0tLS1CRUdJTi|" + _SHAPES)
# Names and paths. What _CONTENT has beside the shapes needs another character: a blank, a quote, or one of @ % = : ? & $ {
_PLAIN = re.compile(r"[A-Za-z0-9_./-]*\Z")
_PLAIN_SHAPES = re.compile(r"-----BEGIN|LS0tLS1CRUdJTi|\b[a-z0-9]{6}\.[a-z0-9]{16}\b|" + _SHAPES)
_MASKED_USER = _Late(PLACEHOLDER.pattern + "@")
_USER_MARK = _Late(r"@(?!sha[0-9]+:)")

# Comments and unscannable texts: a word is enough.
_DOUBTFUL = _Late(
    r"passw|passphrase|passcode|pwd|secret|token|credential|auth(?!or(?!i[sz]))|api.?key|access.?key|private.?key"
    r"|bearer|cookie|header|docker.?config|connection.?string|\b(?:creds?|sas|sig|jwt|psk|pat|login|kennwort)\b"
    r"|(?:\bpass|(?<!by)(?<!com)pass(?![a-z])|pw(?![a-z0-9]))|keys?[\"']?\s*=|-----BEGIN|LS0tLS1CRUdJTi",
    re.IGNORECASE,
)
# Of comments: a key with its value, a value that holds nothing, a value that may go on in the next line.
_ASSIGNED = _Late(r"([\w\"'. -]+=)\s*(.*)")
_HARMLESS_VALUE = _Late(r"""(?:true|false|["']{2}|["'](?P<path>/[^"']*)["']|\[\s*\]|\{\s*\})?\s*\#*\s*\Z""")
_OPENS = _Late(r"""\"\"\"|'''|[\[{]\s*\Z|[\[{,]\s*(?:\#.*)?\Z|-----BEGIN|LS0tLS1CRUdJTi""")
#: An escape can spell any word.
_ESCAPE = _Late(r"\\[uUx][0-9A-Fa-f]")
#: User information whose @ is missing, since the text was cut off there: what follows the colon is no port.
_CUT_OFF_USER = _Late(r"""://[^\s/@"'`\[]*:(?![0-9]{0,5}(?:[^\w]|\Z))""")
_CUT_OFF_HEADER = _Late(r"""\s*\[{1,2}[\w."'-]*\Z""")
_UNPRINTABLE = _Late(r"[\x00-\x08\x0b\x0c\x0e-\x1f]|\r(?!\n)")
_TEMPLATE_ACTION = _Late(r"\{\{[^{}]*\}\}")
_TEMPLATE_COMMENT = _Late(r"\{\{-?\s*/\*([\s\S]*?)(?:\*/|\Z)")
# Words of prose and version numbers, no word of an account.
_PROSE = _Late(
    r"(?:(?!(?:robots?|accounts?|admins?|users?|keys?|pins?)\b)[A-Z]?[a-z]+|v?[0-9][0-9.]{0,7}|[\s.,:;()'/-])*\Z", re.IGNORECASE
)
_CREDENTIAL_OPTION = _Late(r"""["'](?:-u|-t|-p|--user|--username|--creds?)["']\s*,""")
#: A line of a file of variables, in which any name may be that of a secret.
_VARIABLE_LINE = _Late(r"^[^\S\n]*(?:export\s+)?[A-Z][A-Z0-9_]*=", re.MULTILINE)
_CONFIGURATION_LINE = _Late(
    r"""\s*(?:\#.*|\[[^\n]*|(?:[\w-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[\w-]+|"[^"\n]*"|'[^'\n]*'))*\s*=.*"""
    r"""|[\]\[}{,"'].*|)$"""
)
_STRUCTURE = _Late(r"^[^\S\n]*(?:\[|[\w\"'.-]+\s*=)|\{\{", re.MULTILINE)

_OPTION = re.compile(r"-{1,2}([A-Za-z][\w.-]*)(?:=([\s\S]*))?\Z")
#: What stands behind an option whose value is secret and is the next option all the same.
_NEXT_OPTION = _Late(r"--[a-z]+(?:[-_.][a-z0-9]+)*(?:=|\Z)")
_USER_OPTIONS = frozenset(("u", "user", "username", "cred", "creds"))
_USER_AND_PASSWORD = _Late(r"(?!\d+:\d+\Z)[^\s:/]+:(?!//).")
_K3S = _Late(r"(?:\S*/)?(?:k3s|rke2)(?:-agent|-server)?\Z")
_ASSIGNMENT = _Late(r"([A-Za-z_][\w.-]*)=([\s\S]*)\Z")
_WORD = _Late(r"""(?:[^\s"']|"[^"]*"?|'[^']*'?)+""")
_PLAIN_WORD = _Late(r"""[^\s"'=\[\]{},]+""")
#: Shorter values are too common to be looked for in messages.
_SHORTEST = 4
_QUOTED = _Late(r"""\\?"(?:[^"\\]|\\.)*"|'[^'\n]*'|`[^`\n]*`""")
_PARSE_ERROR = _Late(r"toml|token|expect|pars|unmarshal|decod|syntax|invalid|charact", re.IGNORECASE)
_SAFE_QUOTED = _Late(r"[\"'`\\](?:/[\w./-]*|io\.containerd[\w./-]*|[=\[\]{}.,#]|\\[nrt]|[0-9.]*)[\"'`\\]*\Z")


class Withheld(Exception):
    """The secrets of a text cannot be located with certainty. The message is the reason."""


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a key, option or variable of this name holds a secret.

    ``key`` alone is decided by :func:`_is_key_name`, since such a value is often the path of a file.
    """
    lower = name.lower()
    return bool(_SECRET_NAME.search(_SEPARATORS.sub("", lower)) or _SECRET_WORD.search(lower))


def _is_key_name(name: str) -> bool:
    return bool(_KEY_NAME.search(name))


def _is_path(name: str, value: str) -> bool:
    """Whether the value of a name that sounds of a secret is the path of a file: `key_file`, or `tls_key` with a path."""
    if not value.startswith("/"):
        return False
    return bool(_PATH_NAME.search(name) or (_is_key_name(name) and not is_secret_name(name) and _KEY_FILE.match(value)))


def _named_secret(path: Path, value: str) -> bool:
    """Whether the value at this path is a secret by the names on its way."""
    if value.lower() in _PLAIN_VALUES:
        return False
    names = [part for part in path if isinstance(part, str)]
    if not names:
        return False
    if _is_path(names[-1], value):
        return False
    if is_secret_name(names[-1]) or _is_key_name(names[-1]):
        return True
    return names[-1].lower() not in ("username", "user") and _is_below_secret(tuple(names[:-1]))


@functools.lru_cache(maxsize=1024)
def _is_below_secret(names: t.Tuple[str, ...]) -> bool:
    """Whether one of these tables, one within the other, is named as a secret. Neighbours in a text mostly share theirs."""
    before = ""
    for name in names:
        if before not in _NAMING_TABLES and not _FOREIGN_NAME.search(name) and is_secret_name(name):
            return True
        before = name
    return False


def content_spans(text: str) -> t.List[Span]:
    """Where the text holds a secret by its content; placeholders are none."""
    if not _CONTENT_HINT.search(text) or (_PLAIN.match(text) and not _PLAIN_SHAPES.search(text)):
        return []
    spans = []
    for match in _CONTENT.finditer(text):
        group = match.lastgroup or ""
        if not _is_masked(match.group(group)) and match.group(group).strip("\"'\\").lower() not in _PLAIN_VALUES:
            spans.append(match.span(group))
    return spans


def _is_masked(text: str) -> bool:
    return bool(PLACEHOLDER.fullmatch(text.strip("\"'\\")))


def _holds_secret(text: str) -> bool:
    return bool(content_spans(text)) or _is_doubtful_url(text)


def _holds_secret_json(text: str) -> bool:
    """Whether a string is a JSON document with a secret in it, or looks like one that is broken."""
    if text[:1] not in ("{", "["):
        return False
    try:
        value = json.loads(text)
        return Masker().json(value) != value
    except (ValueError, RecursionError):
        return bool(_DOUBTFUL.search(text))


def _is_secret_by_content(text: str, known: _Known) -> bool:
    """Whether a string must not be seen for what it holds; ``known`` keeps the answers of one text, which is looked at twice."""
    if text not in known:
        known[text] = _holds_secret_json(text) or _holds_secret(text)
    return known[text]


def _is_doubtful_url(text: str) -> bool:
    """Whether an ``@`` stands somewhere after ``://`` that :data:`_CONTENT` did not take for user information."""
    if "@" not in text or "://" not in text:
        return False
    rest = _MASKED_USER.sub("", text)
    start = rest.find("://")
    return start >= 0 and bool(_USER_MARK.search(rest, start))


class Masker:
    """Masks the texts of one node.

    It remembers what it masked, so that a value seen in a file is found again in an error message that quotes it.
    """

    def __init__(self) -> None:
        self._seen: t.Set[str] = set()
        self._in_doubt = False

    # ---- TOML

    def toml(self, text: str) -> str:
        """The text with its secrets masked; still TOML, with the same tables, keys and lines.

        :raises Withheld: they cannot be located with certainty.
        """
        try:
            document = scan_document(text)
        except TomlScanError as error:
            if is_harmless(text):
                return text
            self._in_doubt = True
            self._remember_doubtful(text)
            raise Withheld("its secrets cannot be located, it is no readable TOML (%s)" % error) from None
        known: _Known = {}
        spans = sorted(self._toml_spans(text, document, known))
        masked = _replace(text, spans)
        _verify(masked, text, document, known)
        return masked

    def put_back(self, edited: str, original: str) -> str:
        """A text that was edited in its masked form, with the original's own values in their places, by ordinal.

        :param edited: the masked text of ``original`` after an edit elsewhere.
        :raises Withheld: the original cannot be masked, so it was never edited elsewhere; or a placeholder of the
            edited text is none of this file's, was written in another form, or is missing.
        """
        masked = self.toml(original)
        spans = [] if masked == original else sorted(self._toml_spans(original, scan_document(original), {}))
        values = {number: (form, original[a:b]) for a, b, number, form in _placeholders(original, spans)}
        return _put_values(edited, values, original)

    def _toml_spans(self, text: str, document: Document, known: _Known) -> t.Iterator[t.Tuple[int, int, str]]:
        """(start, end, form) of what must be replaced; form: ``string``, ``comment`` or ``part``."""
        leaves = [entry for entry in document.entries if entry.form in ("string", "scalar")]
        neighbours = _Neighbours()
        array: t.Optional[Path] = None
        for entry in leaves:
            if entry.kind != "element" or entry.path[:-1] != array:
                neighbours = _Neighbours()
                array = entry.path[:-1] if entry.kind == "element" else None
            yield from self._value_spans(entry, neighbours.hide(entry.string), known)
        yield from _comment_spans(text, document)
        position = 0
        taken = [(leaf.start, leaf.end) for leaf in leaves]
        taken += [(comment.start, comment.end) for comment in document.comments]
        for start, end in sorted(taken) + [(len(text), len(text))]:
            # Between the values: the keys, where a registry may be named by a URL.
            if _KEY_HINT.search(text, position, start):
                yield from ((position + a, position + b, "part") for a, b in content_spans(text[position:start]))
            position = end

    def _value_spans(self, entry: Entry, is_argument: bool, known: _Known) -> t.Iterator[t.Tuple[int, int, str]]:
        value = entry.raw if entry.string is None else entry.string
        if is_argument or _named_secret(entry.path, value):
            if not _is_masked(value):
                self._remember(value)
                yield entry.start, entry.end, "string"
        elif entry.string is None or not _is_secret_by_content(value, known):
            return
        elif _holds_secret_json(value):
            self._remember(value)
            yield entry.start, entry.end, "string"
        else:
            raw = entry.raw
            parts = [] if "\\" in raw or raw[:3] in ('"""', "'''") else content_spans(raw[1:-1])
            if parts and not _holds_secret(_replace(raw[1:-1], [(a, b, "part") for a, b in parts])):
                for start, end in parts:
                    self._remember(raw[1 + start : 1 + end])
                    yield entry.start + 1 + start, entry.start + 1 + end, "part"
            else:
                self._remember(value)
                yield entry.start, entry.end, "string"

    # ---- JSON

    def json(self, value: t.Any) -> t.Any:
        """A decoded JSON document with its secrets masked; the same keys but for secrets inside a key."""
        return self._json(value, (), _Counter(_highest(json.dumps(value))))

    def _json(self, value: t.Any, path: Path, counter: _Counter) -> t.Any:
        if isinstance(value, dict):
            return {
                self._free(key, counter): self._json(inner, path + (key,), counter) for key, inner in value.items()
            }
        if isinstance(value, list):
            return self._json_list(value, path, counter)
        if value is None or isinstance(value, bool):
            return value
        text = str(value)
        if _named_secret(path, text):
            if _is_masked(text):
                return value
            self._remember(text)
            return counter.placeholder()
        return self._json_string(value, path, counter) if isinstance(value, str) else value

    def _json_list(self, values: t.List[t.Any], path: Path, counter: _Counter) -> t.List[t.Any]:
        masked = []
        neighbours = _Neighbours()
        for value in values:
            if neighbours.hide(value):
                self._remember(value)
                masked.append(counter.placeholder())
            else:
                masked.append(self._json(value, path, counter))
        return masked

    def _json_string(self, value: str, path: Path, counter: _Counter) -> str:
        if value[:1] in ("{", "["):
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                return counter.placeholder() if _DOUBTFUL.search(value) else self._free(value, counter)
            masked = self._json(inner, path, counter)
            return value if masked == inner else json.dumps(masked)
        return self._free(value, counter)

    # ---- command lines, environments, messages

    def command(self, argv: t.Sequence[str]) -> t.List[str]:
        """A command line with the values of secret options and variables masked."""
        return self._words(argv, _Counter(0))

    def _words(self, argv: t.Sequence[str], counter: _Counter) -> t.List[str]:
        words = []
        hide_next = False
        for word in argv:
            option = _OPTION.match(word)
            pair = option or _ASSIGNMENT.match(word)
            if hide_next and not _NEXT_OPTION.match(word):
                words.append(self._hide_value(word, word, counter))
                hide_next = False
            elif pair and _is_secret_option(pair.group(1), argv):
                hide_next = pair.group(2) is None
                words.append(word if hide_next else self._hide_value(word, pair.group(2), counter))
            elif words and _is_user_option(argv[len(words) - 1], word):
                words.append(self._hide_value(word, word, counter))
            else:
                hide_next = False
                # A word with blanks may be a command line itself, as of `sh -c`.
                inner = self._line(word, counter) if len(_WORD.findall(word)) > 1 else word
                words.append(self._free(inner, counter))
        return words

    def _hide_value(self, word: str, value: str, counter: _Counter) -> str:
        if value.lower() in _PLAIN_VALUES:
            return word
        self._remember(value)
        return word[: len(word) - len(value)] + counter.placeholder()

    def command_line(self, text: str) -> str:
        """The same for a command line written as one text."""
        return self._line(text, _Counter(_highest(text)))

    def _line(self, text: str, counter: _Counter) -> str:
        words = _WORD.findall(text)
        # _WORD takes everything that is not blank, so the blanks between the words are what is left.
        blanks = _WORD.split(text)
        masked = self._words(words, counter)
        return "".join(blank + word for blank, word in zip(blanks, masked + [""]))

    def text(self, text: str) -> str:
        """A message (stderr, a gRPC error): secrets by content, and whatever was masked in a file of this node."""
        masked = self._free(text, _Counter(_highest(text)))
        for secret in sorted(self._seen, key=len, reverse=True):
            if secret in masked:
                masked = masked.replace(secret, "__RUNTIME_GATE_MASKED_%d__" % (_highest(masked) + 1))
        if self._in_doubt:
            # A parser may quote the very text that could not be scanned.
            lines = [_without_quotations(line) if _PARSE_ERROR.search(line) else line for line in masked.split("\n")]
            masked = "\n".join(lines)
        return masked

    def _free(self, text: str, counter: _Counter) -> str:
        pieces = []
        position = 0
        for start, end in content_spans(text):
            self._remember(text[start:end])
            pieces += [text[position:start], counter.placeholder()]
            position = end
        masked = "".join(pieces) + text[position:]
        return counter.placeholder() if _is_doubtful_url(masked) else masked

    def _remember(self, value: str) -> None:
        for line in value.splitlines():
            line = line.strip("\"'\\ \t")
            if len(line) >= _SHORTEST and line.lower() not in _PLAIN_VALUES:
                self._seen.add(line)

    def _remember_doubtful(self, text: str) -> None:
        """The words of an unscannable text that may be secrets: an error message may quote them."""
        for line in text.splitlines():
            if _DOUBTFUL.search(line) or "@" in line or _VARIABLE_LINE.match(line) or not _CONFIGURATION_LINE.match(line):
                for word in _PLAIN_WORD.findall(line.partition("=")[2] or line):
                    if not _DOUBTFUL.search(word):
                        self._remember(word)


class _Counter:
    def __init__(self, used: int) -> None:
        self.number = used

    def placeholder(self) -> str:
        self.number += 1
        return "__RUNTIME_GATE_MASKED_%d__" % self.number


def _highest(text: str) -> int:
    """The highest number of a placeholder that stands in the text already (a recording that was masked before)."""
    return max((int(match.group(1)) for match in PLACEHOLDER.finditer(text)), default=0)


class _Neighbours:
    """Walks through an array, in which an element may say what the ones after it are.

    These are: an option and its secret value (``["--token", "..."]``), and the lines of a PEM block.
    """

    def __init__(self) -> None:
        self._first: t.Any = None
        self._before: t.Any = None
        self._in_pem = False

    def hide(self, value: t.Any) -> bool:
        """Whether the next element is a secret for what stands before it."""
        is_secret = isinstance(value, str) and not _is_masked(value) and value.lower() not in _PLAIN_VALUES
        hidden = is_secret and (self._in_pem or self._is_argument(value))
        if isinstance(value, str):
            begin = value.rfind("-----BEGIN")
            self._in_pem = (self._in_pem or begin >= 0) and "-----END" not in value[max(begin, 0) :]
        self._first = value if self._first is None else self._first
        self._before = value
        return hidden

    def _is_argument(self, value: str) -> bool:
        option = _OPTION.match(self._before) if isinstance(self._before, str) else None
        if not option or option.group(2) is not None:
            return False
        if _is_user_option(self._before, value):
            return True
        if option.group(1) == "t":
            return isinstance(self._first, str) and bool(_K3S.match(self._first))
        return is_secret_name(option.group(1)) and not _NEXT_OPTION.match(value)


def _is_user_option(before: str, value: str) -> bool:
    """Whether two neighbours are ``-u user:password``; ``--user 1000:1000`` is none."""
    return before.lstrip("-") in _USER_OPTIONS and before[:1] == "-" and bool(_USER_AND_PASSWORD.match(value))


def _is_secret_option(name: str, argv: t.Sequence[str]) -> bool:
    if name == "t":
        # `k3s server -t TOKEN`; elsewhere -t is something else.
        return bool(_K3S.match(argv[0]))
    return is_secret_name(name) or _is_key_name(name)


def _without_quotations(line: str) -> str:
    return _QUOTED.sub(lambda match: match.group() if _SAFE_QUOTED.match(match.group()) else '"(withheld)"', line)


def _placeholders(text: str, spans: t.Iterable[t.Tuple[int, int, str]]) -> t.Iterator[t.Tuple[int, int, int, str]]:
    """(start, end, number, what is written there) for each span, numbered in file order."""
    counter = _Counter(_highest(text))
    for start, end, form in spans:
        placeholder = counter.placeholder()
        lines = text.count("\n", start, end)
        if form == "string":
            # A backslash at the end of a line joins the lines: the value is the placeholder, the line count is kept.
            placeholder = '"""%s\\%s"""' % (placeholder, "\n" * lines) if lines else '"%s"' % placeholder
        yield start, end, counter.number, placeholder


def _replace(text: str, spans: t.Iterable[t.Tuple[int, int, str]]) -> str:
    """The text with a placeholder, numbered in file order, in place of each span."""
    pieces = []
    position = 0
    for start, end, _number, placeholder in _placeholders(text, spans):
        pieces += [text[position:start], placeholder]
        position = end
    return "".join(pieces) + text[position:]


def _put_values(edited: str, values: t.Mapping[int, t.Tuple[str, str]], original: str) -> str:
    """The values in the places of their placeholders. One pass: no value is searched for placeholders.

    :param values: number -> (what is written in its place, the value).
    :raises Withheld: a value has no place in the text, or a placeholder no value.
    """
    pieces: t.List[str] = []
    position = 0
    placed = set()
    stray = ""
    for match in PLACEHOLDER.finditer(edited):
        form, value = values.get(int(match.group(1)), ("", ""))
        start = match.start() - max(form.find(match.group()), 0)
        if form and edited.startswith(form, start):
            pieces += [edited[position:start], value]
            position = start + len(form)
            placed.add(int(match.group(1)))
        elif form or match.group() not in original:
            stray = match.group()
    lost = sorted(set(values) - placed)
    if lost:
        raise Withheld("the edit would lose the secret value number %d of this file" % lost[0])
    if stray:
        raise Withheld("%s stands for no value of this file, or was changed" % stray)
    return "".join(pieces) + edited[position:]


def _names_secret(entry: Entry) -> bool:
    """The entry is a secret by its name, also where its value is empty."""
    return _named_secret(entry.path, "x" if entry.string == "" else (entry.raw if entry.string is None else entry.string))


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end


def _comment_spans(text: str, document: Document) -> t.Iterator[t.Tuple[int, int, str]]:
    """Comments that may hold a secret.

    A line is masked whole when a word of a secret stands in it, unless it is a key whose value is empty, a boolean or
    a path. So is the line after one that only announces a secret ("password below"). Below a commented-out table of
    secrets, and below a value that goes on over several lines, the lines after it are masked too, until a
    commented-out header, or something else than a comment, stands between them. A comment inside a list or an inline
    table of secrets is one of them, commented out; one behind an empty secret, on its line, may be what the value was.
    """
    if not document.comments:
        return
    secret = [
        (entry.start, _line_end(text, entry.end) if entry.string == "" else entry.end)
        for entry in document.entries
        if entry.form != "table" and _names_secret(entry)
    ]
    number = within = 0
    tainted = announced = False
    end_of_previous = -1
    for comment in document.comments:
        if end_of_previous < 0 or text[end_of_previous : comment.start].strip():
            tainted = announced = False
        end_of_previous = comment.end
        body = text[comment.start : comment.end].strip("# \t")
        if body.startswith("["):
            tainted = bool(_DOUBTFUL.search(body) or _ESCAPE.search(body))
            announced = False
        # Both are in the order of the text: what reaches over this comment has begun before it.
        while number < len(secret) and secret[number][0] < comment.start:
            within = max(within, secret[number][1])
            number += 1
        doubtful = _is_doubtful_comment(body) or comment.start < within
        if ((tainted or announced) and body) or doubtful:
            tainted = tainted or bool(_OPENS.search(body))
            if not _is_masked(body) and (not body.startswith("[") or _holds_secret(body) or "=" in body):
                yield comment.start + 1, comment.end, "comment"
        if body:
            announced = doubtful and not body.startswith("[") and _announces(body)


def _announces(body: str) -> bool:
    """Whether a comment has no value of its own: prose, or a name with nothing behind it."""
    assigned = _ASSIGNED.match(body)
    return not assigned or not assigned.group(2)


def _is_doubtful_comment(body: str) -> bool:
    assigned = _ASSIGNED.match(body)
    if _CUT_OFF_USER.search(body) or _ESCAPE.search(body):
        return True
    if not assigned:
        return bool(_DOUBTFUL.search(body)) or _holds_secret(body)
    key, value = assigned.groups()
    if _holds_secret(key) or _holds_secret(value):
        return True
    return bool(_DOUBTFUL.search(body)) and not _is_harmless_value(key, value)


def _is_harmless_value(key: str, value: str) -> bool:
    harmless = _HARMLESS_VALUE.match(value) if value else None
    if not harmless or not harmless.group("path"):
        return bool(harmless)
    name = key.rstrip("= \t").rpartition(".")[2].strip("\"' \t")
    return _is_path(name, harmless.group("path")) or not (is_secret_name(name) or _is_key_name(name))


def _verify(masked: str, text: str, before: Document, known: _Known) -> None:
    """Scan the masked text again: nothing may be left, and nothing else may have changed.

    :param before: what the text was before it was masked.

    :raises Withheld: something is.
    """
    try:
        after = before if masked == text else scan_document(masked)
    except TomlScanError as error:
        raise Withheld("its secrets cannot be masked (%s)" % error) from None
    if len(after.entries) != len(before.entries):
        raise Withheld("its secrets cannot be masked, the text would change its meaning")
    names = {part for entry in after.entries for part in entry.path if isinstance(part, str)}
    secret_names = {name for name in names if _holds_secret(name)}
    for old, new in zip(before.entries, after.entries):
        value = new.raw if new.string is None else new.string
        secret_key = bool(secret_names) and not secret_names.isdisjoint(new.path)
        secret_value = new.form in ("string", "scalar") and _named_secret(new.path, value) and not _is_masked(value)
        if new.string is not None:
            secret_value = secret_value or _is_secret_by_content(value, known)
        if secret_key or secret_value or old.line != new.line:
            raise Withheld("line %d holds a secret in a spelling that cannot be masked" % new.line)


def is_harmless(text: str) -> bool:
    """Whether a text that is no TOML holds no secret with certainty, so that it need not be withheld.

    All of this must hold: no word of a secret stands anywhere, no variable of a shell (``REG=...``), nothing but prose in
    the comments of a template, no ``@`` after ``://``, no content that looks like a
    secret, no escape that could spell such a word, no string over several lines or cut off in the last one, and each
    line (Go template actions left out) has the shape of a comment, a header, a key with a value or an array's element;
    at least one of them is a header or has an equals sign. A file with nothing but a password in it does not pass.
    """
    return not _may_hold_secret(text) and not _ends_in_string(text) and _is_configuration(text)


def _may_hold_secret(text: str) -> bool:
    patterns = (_DOUBTFUL, _ESCAPE, _CUT_OFF_USER, _UNPRINTABLE, _VARIABLE_LINE, _CREDENTIAL_OPTION)
    if _holds_secret(text) or any(pattern.search(text) for pattern in patterns):
        return True
    return not all(_PROSE.match(comment.group(1)) for comment in _TEMPLATE_COMMENT.finditer(text))


def _ends_in_string(text: str) -> bool:
    last = text.rpartition("\n")[2]
    is_open = last.count('"') % 2 or last.count("'") % 2
    return "://" in last or bool(is_open and not _CUT_OFF_HEADER.match(last))


def _is_configuration(text: str) -> bool:
    if '"""' in text or "'''" in text or not _STRUCTURE.search(text):
        return False
    rest = _TEMPLATE_ACTION.sub("", text.lstrip("\ufeff"))
    return all(_CONFIGURATION_LINE.match(line) for line in rest.splitlines())
