"""A run is checked against its own files, and each verdict is found where it came from."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from corpus.spool import Spool
from rlm import Caps, OneOf, RunDirError, count, resume
from rlm.cli.app import main
from rlm.runs.checking import check_roots
from rlm.runs.looks import Look, looks_at
from rlm.runs.manifest import Manifest
from rlm.testing import ScriptedModel, judge_script

pytestmark = pytest.mark.anyio

RECORDS = [(f"r{n}", f"{'fire' if n % 3 == 0 else 'calm'} {n}") for n in range(40)]


def judge() -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text))


class Letters:
    """An encoder that sees letters."""

    name, version, dimensions, max_words = "letters", "1", 26, 60

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [[text.count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts]
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.float32(np.linalg.norm(vectors))

    def close(self) -> None: ...


# ---------------------------------------------------------------- check


@pytest.mark.parametrize("kind", ["chat", "labels of a OneOf", "rule", "ranking", "halted"])
async def test_a_run_of_any_kind_fits_together(tmp_path: Path, kind: str) -> None:
    run = tmp_path / "run"
    match kind:
        case "chat":
            outcome = await count("fire?", RECORDS, model=judge(), run=run)
        case "rule":
            outcome = await count("fire?", [*RECORDS, ("e", " ")], terms=("fire",), run=run)
        case "ranking":
            outcome = await count("fire?", RECORDS, encoder=Letters(), cache=False, run=run)
        case "halted":
            caps = Caps(calls=2)
            outcome = await count("fire?", RECORDS, model=judge(), run=run, caps=caps)
        case _:
            question = OneOf(text="how hot?", labels=("hot", "cold"))
            script = judge_script(lambda text: "hot" if "fire" in text else "cold")
            outcome = await count(question, RECORDS, model=ScriptedModel(script), run=run)
    checked = check_roots(run)
    assert (checked.differences, checked.notes) == ((), ())
    assert checked.content_root == outcome.receipts.content_root
    assert checked.content_root is not None


def edit(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        path = run / name
        whole = path.read_bytes()
        assert whole.count(old) >= 1
        path.write_bytes(whole.replace(old, new, 1))

    return change


def flip(name: str, at: int) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        path = run / name
        whole = bytearray(path.read_bytes())
        whole[at] ^= 5
        path.write_bytes(whole)

    return change


def remove(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / name).unlink()

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edit("spool/records.bin", b"fire 3", b"fire 9"), "have another text"),
        (edit("spool/records.bin", b"r7", b"r\x787"[:2]), "have another id"),
        (flip("spool/texts.bin", 0), "have another text"),
        (flip("spool/ids.bin", 0), "have another id"),
        (flip("verdicts/final.npy", -2), "another state than the votes"),
        (flip("verdicts/codes.npy", -4), "another state than the votes"),
        (edit("receipt.json", b'"count": 14', b'"count": 15'), "another result"),
        (edit("receipt.json", b'"content_root": "', b'"content_root": "0'), "content root"),
        (edit("manifest.json", b'"content_root": "', b'"content_root": "0'), "content roots"),
        (edit("manifest.json", b'"question": "fire?"', b'"question": "ice?"'), "content root"),
        (edit("events.jsonl", b'"items":8', b'"items":9'), "not the log"),
        (remove("events.jsonl"), "cannot be read"),
        (remove("verdicts/tally.json"), "there is no result"),
        (remove("spool/meta.json"), "there are no records"),
        (flip("spool/empty.bin", 3), "empty"),
        (flip("spool/first.bin", 8), "identical texts"),
    ],
)
async def test_what_was_changed_by_hand_is_found(
    tmp_path: Path, change: Callable[[Path], None], said: str
) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run)
    change(run)
    assert any(said in difference for difference in check_roots(run).differences)


async def test_a_session_that_was_killed_after_the_receipt_is_a_note(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run)
    log = run / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines, lines[0]]))
    checked = check_roots(run)
    assert checked.consistent
    assert checked.notes == ("1 event(s) came after the session of the receipt",)


async def test_a_check_says_that_it_proves_no_origin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    outcome = await count("fire?", RECORDS, model=judge(), run=run)
    assert main(["show", str(run), "--check"]) == 0
    out = capsys.readouterr().out
    assert "consistent, not authenticated" in out
    assert f"content root: {outcome.receipts.content_root}" in out
    flip("verdicts/final.npy", -2)(run)
    assert main(["show", str(run), "--check", "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert (data["consistent"], data["authenticated"]) == (False, False)
    assert len(data["differences"]) == 3  # the votes, the root and the numbers


async def test_a_run_without_a_receipt_has_nothing_to_check(tmp_path: Path) -> None:
    await count("fire?", RECORDS, terms=("fire",), run=tmp_path / "run")
    (tmp_path / "run" / "receipt.json").unlink()
    with pytest.raises(RunDirError, match="no receipt to check"):
        check_roots(tmp_path / "run")


# ---------------------------------------------------------------- one record


def looks(run: Path, id_: str) -> list[Look]:
    with Spool.open(run / "spool") as spool:
        ordinal = spool.find(id_)
        assert ordinal is not None
        return looks_at(run, Manifest.load(run), spool.digest(ordinal))


async def test_a_record_says_which_session_and_which_call_judged_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run, caps=Caps(calls=5))
    await resume(run, model=judge(), caps=Caps(calls=100))
    grown = [*RECORDS, ("new", "a new fire")]
    await count("fire?", grown, model=judge(), run=run)
    by_session = {id_: [look.session for look in looks(run, id_)] for id_ in ("r0", "r39", "new")}
    assert by_session == {"r0": [1, 2], "r39": [1, 2], "new": [3, 3]}
    named = [note.segment for note in Manifest.load(run).sessions]
    assert [look.segment for look in looks(run, "r0")] == named[:2]
    first = looks(run, "r0")[0]
    assert (first.state, first.holds, first.pass_index) == ("matched", True, 0)
    keys = {json.loads(line).get("key") for line in (run / "events.jsonl").read_text().splitlines()}
    assert len(first.calls) == 1
    assert any(key and key.startswith(first.calls[0]) for key in keys)


async def test_verdicts_of_another_judge_and_replaced_ones_no_longer_hold(tmp_path: Path) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run, passes=1)
    other = ScriptedModel(judge_script(lambda _: False), name="other")
    await resume(run, model=other)
    assert [(look.state, look.holds) for look in looks(run, "r0")] == [
        ("matched", False),
        ("not_matched", True),
    ]


async def test_a_record_is_shown_with_its_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    await count("fire?", RECORDS, model=judge(), run=run)
    assert main(["show", str(run), "--record", "r3"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "r3  matched"
    assert [line for line in out if line.startswith("  pass 2: matched  session 1, call ")]
    assert main(["show", str(run), "--record", "r3", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["state"], [look["session"] for look in data["looks"]]) == ("matched", [1, 1])
    assert main(["show", str(run), "--record", "r99"]) == 2
    assert "no record 'r99'" in capsys.readouterr().err


async def test_no_model_is_asked_to_show_a_record_of_a_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await count("fire?", RECORDS, terms=("fire",), run=tmp_path / "run")
    assert main(["show", str(tmp_path / "run"), "--record", "r0"]) == 0
    assert "no verdict about it stands in a journal" in capsys.readouterr().out


async def test_calls_that_asked_again_are_named_too(tmp_path: Path) -> None:
    run = tmp_path / "run"
    script = judge_script(lambda text: "fire" in text, lambda n: "leave-out" if n == 0 else None)
    await count("fire?", RECORDS[:4], model=ScriptedModel(script), run=run, passes=1)
    assert [len(look.calls) for look in looks(run, "r3")] == [2]
