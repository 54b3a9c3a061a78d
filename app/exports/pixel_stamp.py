"""A line of text inside a PNG or GIF, written and read without decoding the pixels.

PNG: a ``tEXt`` chunk before ``IEND`` (PNG specification, 11.3.4.3); GIF: a comment extension before the
first frame (GIF89a, 24). Pillow could write both, and would compress all pixels anew for it.
"""

from __future__ import annotations

import struct
import zlib

PIXELS = (".png", ".gif")
_KEY = b"tokentrip"
_PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"
_GIF_COMMENT = b"\x21\xfe"
_GIF_HEADER = 13
_SUB_BLOCK = 255


def put_text(content: bytes, suffix: str, text: str) -> bytes:
    """The picture with an ASCII text in it."""
    data = text.encode("ascii")
    if suffix == ".png":
        return content.removesuffix(_PNG_END) + _chunk(data) + _PNG_END
    first = _GIF_HEADER + _palette_bytes(content[10])
    return content[:first] + _comment(data) + content[first:]


def take_text(content: bytes, suffix: str) -> tuple[str, bytes] | None:
    """The text of a picture and the picture without it; None where it has none."""
    if suffix == ".png":
        start = content.rfind(b"tEXt" + _KEY + b"\x00") - 4
        if start < 0:
            return None
        size = struct.unpack(">I", content[start : start + 4])[0]
        data = content[start + 8 + len(_KEY) + 1 : start + 8 + size]
        rest = content[:start] + content[start + 12 + size :]
    else:
        start = content.rfind(_GIF_COMMENT + bytes([len(_KEY)]) + _KEY)
        if start < 0:
            return None
        data, end = _sub_blocks(content, start + 3 + len(_KEY))
        rest = content[:start] + content[end:]
    return data.decode("ascii", "replace"), rest


def _palette_bytes(flags: int) -> int:
    """Size of the palette that follows a GIF's header."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _chunk(data: bytes) -> bytes:
    body = b"tEXt" + _KEY + b"\x00" + data
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def _comment(data: bytes) -> bytes:
    """The key in a first sub-block of its own, then the text."""
    pieces = [_KEY, *(data[at : at + _SUB_BLOCK] for at in range(0, len(data), _SUB_BLOCK))]
    return _GIF_COMMENT + b"".join(bytes([len(piece)]) + piece for piece in pieces) + b"\x00"


def _sub_blocks(content: bytes, start: int) -> tuple[bytes, int]:
    """The bytes of the sub-blocks from ``start`` on, and where they end; a cut file ends where it is cut."""
    found, at = b"", start
    while at < len(content) and content[at]:
        found += content[at + 1 : at + 1 + content[at]]
        at += 1 + content[at]
    return found, at + 1
