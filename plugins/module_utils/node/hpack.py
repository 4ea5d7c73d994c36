# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""HPACK (RFC 7541): the headers of an HTTP/2 answer decoded, those of a request encoded as plain literals.

Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import typing as t

Header = t.Tuple[str, str]

#: SETTINGS_HEADER_TABLE_SIZE that a client which sends no other value has promised (RFC 9113, 6.5.2).
TABLE_SIZE = 4096
#: Size that each entry of the dynamic table costs on top of its octets (RFC 7541, 4.1).
_ENTRY_OVERHEAD = 32

# RFC 7541, appendix A.
_STATIC: t.Tuple[Header, ...] = (
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
) + tuple(
    (name, "")
    for name in (
        "accept-language accept-ranges accept access-control-allow-origin age allow authorization cache-control "
        "content-disposition content-encoding content-language content-length content-location content-range "
        "content-type cookie date etag expect expires from host if-match if-modified-since if-none-match if-range "
        "if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization range "
        "referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary "
        "via www-authenticate"
    ).split()
)

# RFC 7541, appendix B: length of a code in bits -> the octets that have it, in order (256 is the end of the string).
# The code is canonical: codes of one length are consecutive, and the next length goes on where they end.
_HUFFMAN_LENGTHS: t.Tuple[t.Tuple[int, t.Sequence[int]], ...] = (
    (5, b"012aceiost"),
    (6, b" %-./3456789=A_bdfghlmnpru"),
    (7, b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
    (8, b"&*,;XZ"),
    (10, b"!\"()?"),
    (11, b"'+|"),
    (12, b"#>"),
    (13, b"\x00$@[]~"),
    (14, b"^}"),
    (15, b"<`{"),
    (19, (92, 195, 208)),
    (20, (128, 130, 131, 162, 184, 194, 224, 226)),
    (21, (153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230)),
    (22, (129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190)
        + (196, 198, 228, 232, 233)),
    (23, (1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174, 175, 180)
        + (182, 183, 188, 191, 197, 231, 239)),
    (24, (9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237)),
    (25, (199, 207, 234, 235)),
    (26, (192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255)),
    (27, (203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252, 253, 254)),
    (28, (2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 127, 220)
        + (249,)),
    (30, (10, 13, 22, 256)),
)  # fmt: skip


class HpackError(Exception):
    """A header block that RFC 7541 does not allow."""


def _huffman_codes() -> t.Dict[t.Tuple[int, int], int]:
    codes = {}
    code = 0
    previous = 0
    for length, octets in _HUFFMAN_LENGTHS:
        code <<= length - previous
        for octet in octets:
            codes[length, code] = octet
            code += 1
        previous = length
    return codes


_HUFFMAN = _huffman_codes()


def huffman_decode(data: bytes) -> bytes:
    """Decode a Huffman-coded string.

    :raises HpackError: a code that does not exist, or padding that is not the beginning of the end of a string.
    """
    decoded = bytearray()
    code = 0
    length = 0
    for byte in data:
        for shift in range(7, -1, -1):
            code = code << 1 | byte >> shift & 1
            length += 1
            octet = _HUFFMAN.get((length, code))
            if octet == 256 or length > 30:
                raise HpackError("a Huffman code that does not exist")
            if octet is not None:
                decoded.append(octet)
                code = length = 0
    if length > 7 or code != (1 << length) - 1:
        raise HpackError("wrong padding of a Huffman-coded string")
    return bytes(decoded)


def encode(headers: t.Iterable[Header]) -> bytes:
    """Headers as literals that neither side needs to remember (RFC 7541, 6.2.2)."""
    block = bytearray()
    for pair in headers:
        block.append(0)
        for text in pair:
            octets = text.encode("ascii")
            block += _encode_length(len(octets)) + octets
    return bytes(block)


def _encode_length(number: int) -> bytes:
    """An integer with a prefix of 7 bits (RFC 7541, 5.1)."""
    if number < 127:
        return bytes((number,))
    encoded = bytearray((127,))
    number -= 127
    while number >= 128:
        encoded.append(number % 128 + 128)
        number //= 128
    encoded.append(number)
    return bytes(encoded)


class Decoder:
    """Decodes the header blocks of one connection, in their order."""

    def __init__(self) -> None:
        self._dynamic: t.List[Header] = []
        self._limit = TABLE_SIZE
        self._data = b""
        self._pos = 0

    def decode(self, block: bytes) -> t.List[Header]:
        """The headers of one complete block.

        :raises HpackError: the block is not allowed.
        """
        self._data = block
        self._pos = 0
        headers = []
        while self._pos < len(block):
            first = block[self._pos]
            if first & 0x80:
                headers.append(self._entry(self._integer(7)))
            elif first & 0x40:
                header = self._literal(6)
                headers.append(header)
                self._dynamic.insert(0, header)
                self._evict()
            elif first & 0x20:
                self._limit = self._integer(5)
                if self._limit > TABLE_SIZE:
                    raise HpackError("a table larger than allowed")
                self._evict()
            else:
                headers.append(self._literal(4))
        return headers

    def _evict(self) -> None:
        size = 0
        for position, (name, value) in enumerate(self._dynamic):
            size += len(name) + len(value) + _ENTRY_OVERHEAD
            if size > self._limit:
                del self._dynamic[position:]
                return

    def _entry(self, index: int) -> Header:
        if 0 < index <= len(_STATIC):
            return _STATIC[index - 1]
        position = index - len(_STATIC) - 1
        if index == 0 or position >= len(self._dynamic):
            raise HpackError("an index that does not exist")
        return self._dynamic[position]

    def _literal(self, prefix: int) -> Header:
        index = self._integer(prefix)
        name = self._entry(index)[0] if index else self._string()
        return name, self._string()

    def _byte(self) -> int:
        if self._pos >= len(self._data):
            raise HpackError("a header block that ends too early")
        self._pos += 1
        return self._data[self._pos - 1]

    def _integer(self, prefix: int) -> int:
        mask = (1 << prefix) - 1
        number = self._byte() & mask
        if number < mask:
            return number
        shift = 0
        while shift < 28:
            byte = self._byte()
            number += (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
        raise HpackError("a number that is too large")

    def _string(self) -> str:
        coded = self._data[self._pos : self._pos + 1] >= b"\x80"
        length = self._integer(7)
        octets = self._data[self._pos : self._pos + length]
        if len(octets) < length:
            raise HpackError("a header block that ends too early")
        self._pos += length
        return (huffman_decode(octets) if coded else octets).decode("utf-8", "replace")
