"""What a fetch brought: the beginning of a body, decompressed, and its text."""

from __future__ import annotations

import codecs
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpcore

__all__ = ["Page", "Unreadable", "as_result", "read_page"]

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/javascript")
# Python knows codecs that are none of pages, and take quadratic time.
_CHARSETS: Final = re.compile(r"utf-(8|16|32)|iso8859|cp\d|ascii|koi8|shift_jis|euc_|gb|big5|mac-")


class Unreadable(Exception):
    """A body that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A response, as far as it was read."""

    status: int
    location: str | None
    """Where it redirects to; None where it does not."""
    kind: str
    """Its media type, as it came."""
    body: bytes
    cut: bool
    """It goes on."""


async def read_page(response: httpcore.Response, most: int, method: str) -> Page:
    """Read a response to its end, or to `most` bytes of its body; the body of a redirect is not read.

    Raises:
        Unreadable: the body is compressed in a way that cannot be undone.
    """
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
    }
    location = headers.get("location") if response.status in _REDIRECTS else None
    body = _Body(most, headers.get("content-encoding", ""))
    if method != "HEAD" and location is None:
        async for chunk in response.aiter_stream():
            if not body.take(chunk):
                break
        body.close()
    return Page(
        status=response.status,
        location=location,
        kind=headers.get("content-type", ""),
        body=bytes(body.data),
        cut=body.cut,
    )


class _Body:
    """The beginning of a body, decompressed, so that a small one which stands for gigabytes is cut."""

    def __init__(self, most: int, encoding: str) -> None:
        self._most = most
        self.data = bytearray()
        self.cut = False
        named = encoding.strip().lower()
        if named not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise Unreadable(f"its encoding {named[:40]!r} was not asked for")
        packed = named not in ("", "identity")
        self._inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32) if packed else None

    def take(self, chunk: bytes) -> bool:
        """Take a chunk as it was sent, and return whether there is room for more."""
        if self._inflate is not None:
            try:
                chunk = self._inflate.decompress(chunk, self._most - len(self.data) + 1)
            except zlib.error as error:
                raise Unreadable(f"the body cannot be decompressed: {error}") from None
        self.data += chunk
        self.cut = len(self.data) > self._most
        if self.cut:
            del self.data[self._most :]
        return not self.cut

    def close(self) -> None:
        """Take the end of the body."""
        self.cut = self.cut or (self._inflate is not None and not self._inflate.eof)


def as_result(page: Page, url: str, redirects: int) -> dict[str, object]:
    """Return what a model is told of a page: its text, or how many bytes it has where it is no text."""
    found: dict[str, object] = {"status": page.status, "url": url, "type": page.kind[:200]}
    if redirects:
        found["redirects"] = redirects
    if _is_text(page.kind, page.body):
        found["text"] = _text(page.body, page.kind)
    else:
        found["bytes"] = len(page.body)
    if page.cut:
        found["cut"] = f"after {len(page.body):,} bytes"
    return found


def _is_text(kind: str, body: bytes) -> bool:
    named = kind.partition(";")[0].strip().lower()
    if named:
        return named.startswith(_TEXTS) or named.endswith(("+json", "+xml"))
    return b"\0" not in body[:1024]


def _text(body: bytes, kind: str) -> str:
    return body.decode(_charset(kind), "replace")


def _charset(kind: str) -> str:
    named = kind.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    try:
        found = codecs.lookup(named).name
    except (LookupError, ValueError):  # it names none
        return "utf-8"
    return found if _CHARSETS.match(found) else "utf-8"
