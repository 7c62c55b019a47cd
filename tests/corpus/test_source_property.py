"""Nothing is lost between a file and the spool, whatever the lines hold."""

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.records import Record
from corpus.sources import open_source
from corpus.spool import Spool, build_spool
from tests.support.nasty import any_text, nasty_corpus
from tests.support.reading import counted, records_of

PLACED = ("blank-lines", "torn-last-line", "bad-rows")


def sound(text: str) -> str:
    """What the source promises to make of a text: halves of pairs joined, or U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@given(st.lists(any_text(), max_size=6), st.booleans())
def test_any_text_survives_source_and_spool(texts: list[str], plain: bool) -> None:
    lines = [json.dumps({"id": n, "text": t}, ensure_ascii=plain) for n, t in enumerate(texts)]
    raw = io.BytesIO("\n".join(lines).encode("utf-8", "surrogatepass"))
    assert spooled(raw) == [
        Record(id=str(n), text=sound(text), where=f"stream:{n + 1}") for n, text in enumerate(texts)
    ]


def spooled(raw: io.BytesIO) -> list[Record]:
    async def build(folder: Path) -> list[Record]:
        source = open_source(raw, format="jsonl", id="id", text="text")
        with await build_spool(source, folder / "spool") as built:
            return list(built)

    with TemporaryDirectory() as folder:
        return anyio.run(build, Path(folder))


_LINE = st.one_of(
    any_text().map(lambda text: json.dumps({"id": "x", "text": text}).encode()),
    st.sampled_from([b"", b"  ", b"\r", b"{", b"5", b"[]", b'{"id":1}', b'{"id":NaN,"text":"a"}']),
    st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"")),
)


@given(st.lists(_LINE, max_size=12), st.booleans())
def test_every_line_is_a_record_or_counted(lines: list[bytes], ended: bool) -> None:
    raw = b"".join(line + b"\n" for line in [b'{"id":0,"text":"a row"}', *lines])
    raw = raw if ended else raw.removesuffix(b"\n")
    source = open_source(io.BytesIO(raw), format="jsonl", id="id", text="text", on_bad="skip")
    found = records_of(source)
    places = sum(counted(source).get(code, 0) for code in PLACED)
    assert len(found) + places == raw.count(b"\n") + (not raw.endswith(b"\n"))


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_any_bytes_as_lines_are_read(chunks: list[bytes]) -> None:
    raw = b"a\n" + b"".join(chunks)
    source = open_source(io.BytesIO(raw), format="lines")
    found = records_of(source)
    assert [int(record.id) for record in found] == sorted(int(record.id) for record in found)
    lines = raw.count(b"\n") + (not raw.endswith(b"\n"))
    assert len(found) + counted(source).get("blank-lines", 0) == lines


@settings(max_examples=30)
@given(st.permutations(range(len(nasty_corpus()))))
def test_the_order_of_the_source_is_kept_and_its_fingerprint_is_not_of_the_order(
    order: list[int],
) -> None:
    corpus = nasty_corpus()

    async def build(folder: Path) -> tuple[list[str], str]:
        source = open_source([corpus[n] for n in order])
        with await build_spool(source, folder / "spool") as built:
            assert list(Spool.open(folder / "spool")) == list(built)
            return [record.id for record in built], built.fingerprint

    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        ids, mark = anyio.run(build, Path(one))
        assert ids == [corpus[n].id for n in order]
        order.sort()
        assert anyio.run(build, Path(two))[1] == mark
