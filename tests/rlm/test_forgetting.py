"""A record that is forgotten leaves no byte of its text behind, and the run goes on without it."""

import json
import os
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from corpus.spool import Spool
from executors.errors import ServerFault
from executors.messages import ModelReply, ModelRequest
from executors.models.encoders.cache import CachedEncoder, forget_vectors
from rlm import Caps, Completed, RunDirError, Tally, ValidationError, count, load_result, resume
from rlm.runs.checking import check_roots
from rlm.runs.forgetting import Forgetting, forget_record
from rlm.runs.manifest import Manifest
from rlm.runs.traces import Traces
from rlm.testing import ScriptedModel, judge_script

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "My name is Erika Mustermann and a fire burnt my \u00e4lteste T\u00fcr in Heidelberg."
RECORDS = [
    (f"r{n}", SECRET if n == 7 else f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(40)
]


def judge(quoting: bool = True) -> ScriptedModel:
    """A judge that quotes the secret in its answers, in replies nobody can read, and in errors."""
    good = judge_script(lambda text: "fire" in text)
    seen = 0

    def script(request: ModelRequest) -> ModelReply:
        nonlocal seen
        shown = "Mustermann" in request.messages[-1].content
        seen += shown
        if shown and quoting and seen == 1:
            return ModelReply(text=f"I think about {SECRET!r} and cannot say", stop="end")
        if shown and quoting and seen == 2:
            raise ServerFault(f"cannot work on: {SECRET}")
        reply = good(request)
        assert isinstance(reply, ModelReply)
        return reply

    return ScriptedModel(script)


def found(folder: Path, *needles: bytes) -> list[str]:
    """Search all bytes below a folder, names too."""
    hits: list[str] = []
    for path in [folder, *folder.rglob("*")]:
        whole = os.fsencode(path.name) + (path.read_bytes() if path.is_file() else b"")
        hits += [f"{path.name}: {needle!r}" for needle in needles if needle in whole]
    return hits


def needles(text: str) -> list[bytes]:
    digest = blake2b(text.encode(), digest_size=16).digest()
    pieces = [text, text[:24], text[-24:], text[20:44]]
    written = [piece.encode() for piece in pieces]
    written += [json.dumps(piece)[1:-1].encode() for piece in pieces]
    return [*written, digest, digest.hex().encode()]


def forget(run: Path, record: str) -> Forgetting:
    return forget_record(run, record, now=NOW, cache=run.parent / "cache.sqlite")


def tally(run: Path) -> Tally:
    return load_result(run)


@pytest.mark.anyio
async def test_no_byte_of_its_text_and_no_hash_of_it_is_left(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run)
    await resume(run, model=judge(quoting=False))
    assert len(found(run, *needles(SECRET))) > 4
    forgotten = forget(run, "r7")
    assert found(tmp_path, *needles(SECRET)) == []
    assert (forgotten.id, forgotten.same_text) == ("r7", 0)
    assert forgotten.notes >= 2
    assert forgotten.answers >= 2
    assert forgotten.events >= 1


@pytest.mark.anyio
async def test_what_no_verdict_names_is_searched_for_it(tmp_path: Path) -> None:
    """Refusals and failures leave no verdict behind, and may quote what they were asked."""
    replies: list[ModelReply | Exception] = [
        ModelReply(text=f"I will not judge: {SECRET}", stop="refusal"),
        ServerFault(f"cannot parse {SECRET!r}"),
        ModelReply(text="the lady with the burnt door again", stop="end"),
    ]

    def script(request: ModelRequest) -> ModelReply:
        reply = replies.pop(0) if replies else ModelReply(text="no", stop="refusal")
        if isinstance(reply, Exception):
            raise reply
        return reply

    run = tmp_path / "run"
    while replies:
        await count("fire?", [("r7", SECRET)], model=ScriptedModel(script), run=run, passes=1)
    assert len(found(run / "journal", *needles(SECRET)[:4])) >= 1
    assert found(run / "events.jsonl", b"burnt door") != []
    assert forget(run, "r7").answers >= 1
    assert found(run, *needles(SECRET)) == []
    assert found(run / "events.jsonl", b"burnt door") == []


@pytest.mark.anyio
async def test_the_run_is_shown_checked_and_gone_on_with(tmp_path: Path) -> None:
    run = tmp_path / "run"
    first = await count("fire?", RECORDS, model=judge(quoting=False), run=run)
    forget(run, "r7")
    row = tally(run).row(7)
    assert (row.id, row.state, row.reason) == ("r7", "left_out", "forgotten on request")
    receipts = first.receipts.load(run)
    assert (receipts.forgotten, receipts.totals.calls) == (1, first.receipts.totals.calls)
    assert tally(run).states["matched"] == 14
    checked = check_roots(run)
    assert checked.differences == ()
    assert checked.content_root != first.receipts.content_root
    model = judge()
    outcome = await resume(run, model=model)
    assert isinstance(outcome, Completed)
    assert model.calls == 0
    assert outcome.receipts.content_root == checked.content_root
    assert outcome.receipts.forgotten == 1
    assert check_roots(run).differences == ()


@pytest.mark.anyio
async def test_it_stays_forgotten_when_the_corpus_is_read_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(quoting=False), run=run)
    forget(run, "r7")
    model = judge()
    grown = [("new", "a new fire"), *RECORDS]
    outcome = await count("fire?", grown, model=model, run=run)
    assert isinstance(outcome, Completed)
    assert model.calls == 2
    assert list(outcome.result.ids_of("left_out")) == ["r7"]
    assert found(run, *needles(SECRET)) == []


@pytest.mark.anyio
async def test_a_text_that_others_have_too_stays_with_them(tmp_path: Path) -> None:
    run = tmp_path / "run"
    twice = [("a", "a fire"), ("b", "calm"), ("c", "a fire"), ("d", "a fire")]
    await count("fire?", twice, model=judge(), run=run)
    assert forget(run, "a").same_text == 2
    assert [row.state for row in tally(run).rows()] == [
        "left_out",
        "not_matched",
        "matched",
        "matched",
    ]
    assert check_roots(run).differences == ()
    model = judge()
    outcome = await resume(run, model=model)
    assert model.calls == 0
    assert [row.state for row in tally(run).rows()][2:] == ["matched", "matched"]
    forget(run, "d")
    forget(run, "c")
    assert found(run, *needles("a fire")[:1], *needles("a fire")[-2:]) == []
    assert outcome.receipts.load(run).forgotten == 3


@pytest.mark.anyio
async def test_a_run_that_was_cut_short_goes_on_without_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run, caps=Caps(calls=2))
    forget(run, "r7")
    forget(run, "r39")  # that nobody judged yet
    outcome = await resume(run, model=judge(), caps=Caps(calls=100))
    assert isinstance(outcome, Completed)
    assert isinstance(outcome.result, Tally)
    assert list(outcome.result.ids_of("left_out")) == ["r7", "r39"]
    assert outcome.result.count == 13


class Letters:
    """An encoder that sees letters."""

    name, version, dimensions, max_words = "letters", "1", 26, 60

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[text.count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts]
        vectors: NDArray[np.float32] = np.array(rows, dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors

    def close(self) -> None: ...


@pytest.mark.anyio
async def test_its_label_and_the_head_that_it_taught_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = tmp_path / "run"
    labels = {f"r{n}": "yes" if n % 3 == 0 else "no" for n in range(30)}
    await count("fire?", RECORDS, labels=labels, encoder=Letters(), run=run)
    before = tally(run)
    assert before.row(7).reason == "labelled by you" or before.by_person[7]
    cache = tmp_path / "cache" / "rlm" / "embeddings.sqlite"
    forgotten = forget_record(run, "r7", now=NOW, cache=cache)
    assert (forgotten.labels, forgotten.head, forgotten.vectors) == (1, True, 1)
    assert not (run / "head.json").exists()
    assert "r7" not in (run / "labels.json").read_text(encoding="utf-8")
    assert found(run, *needles(SECRET)) == []
    assert check_roots(run).differences == ()
    outcome = await resume(run, encoder=Letters())
    assert isinstance(outcome, Completed)
    assert isinstance(outcome.result, Tally)
    assert outcome.result.labelled == 29


@pytest.mark.anyio
async def test_a_ranking_forgets_its_score(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, encoder=Letters(), cache=False, run=run)
    forget(run, "r7")
    assert check_roots(run).differences == ()
    assert found(run, *needles(SECRET)) == []


def test_the_cache_of_embeddings_holds_no_byte_of_a_vector_that_was_erased(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with_cache = CachedEncoder(Letters(), path)
    with_cache.encode(["a third"])
    other = sqlite3.connect(path)  # keeps the write-ahead log alive
    other.execute("SELECT count(*) FROM vectors").fetchone()
    vectors = with_cache.encode(["one text", "two texts"])
    assert forget_vectors(path, ["one text"], [("letters", "1", 60)]) == 1
    assert found(tmp_path, vectors[0].tobytes()) == []
    assert found(tmp_path, vectors[1].tobytes()) != []
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*) FROM vectors").fetchone() == (2,)
    file.close()
    other.close()


@pytest.mark.anyio
@pytest.mark.parametrize("dies", range(9))
async def test_a_forgetting_that_dies_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: int
) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run)
    await resume(run, model=judge(quoting=False))
    replaced = 0
    for kind in ("replace", "rename"):
        real = getattr(Path, kind)

        def dying(path: Path, target: Path, real: object = real) -> object:
            nonlocal replaced
            replaced += 1
            if replaced > dies:
                raise KeyboardInterrupt
            assert callable(real)
            return real(path, target)

        monkeypatch.setattr(Path, kind, dying)
    try:
        forget(run, "r7")
        died = False
    except KeyboardInterrupt:
        died = True
    monkeypatch.undo()
    assert died
    forget(run, "r7")
    assert found(run, *needles(SECRET)) == []
    outcome = await resume(run, model=judge())
    assert list(tally(run).ids_of("left_out")) == ["r7"]
    assert outcome.receipts.forgotten == 1
    assert check_roots(run).differences == ()


@pytest.mark.anyio
async def test_what_is_no_record_and_no_run_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, terms=("fire",), run=run)
    with pytest.raises(ValidationError, match="no record 'r99'"):
        forget(run, "r99")
    with pytest.raises(RunDirError):
        forget(tmp_path, "r7")
    assert Manifest.load(run).forgotten == ()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("she said: my name is erika MUSTERMANN", True),
        ('{"1": {"quote": "\\u00e4lteste T\\u00fcr in Heidel"}}', True),
        ("a fire burnt\\n my \u00e4lteste", True),
        ("fire in Heidelberg", False),
        ("", False),
    ],
)
def test_some_words_in_a_row_give_a_text_away(words: str, told: bool) -> None:
    assert Traces(SECRET)(words) is told


def test_a_short_text_is_found_everywhere_and_tells_nothing() -> None:
    assert not Traces("no")("there is no fire")
    assert Traces("a calm one")("it was A  calm one.")


@pytest.mark.anyio
async def test_the_spool_without_it_is_whole(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, terms=("fire",), run=run)
    forget(run, "r7")
    with Spool.open(run / "spool") as spool:
        assert [record.id for record in spool] == [id_ for id_, _ in RECORDS]
        assert [r.text for r in spool] == ["" if id_ == "r7" else text for id_, text in RECORDS]
        assert spool.find("r7") == 7
        assert spool.forgotten.tolist() == [7]
