"""What tools did is written down, so that their effect is not had twice."""

from pathlib import Path

import pytest

from executors.errors import InternalError, ReplayMiss
from executors.ids import ContentKey
from executors.journal.answers import answers
from executors.journal.forget import Forgotten, forget
from executors.journal.journal import RunJournal
from executors.journal.lines import Unknown, begun_line, done_line, read_line
from executors.journal.records import Journal, NoJournal, ToolBegun, ToolDone
from executors.journal.replay import Replay
from executors.journal.stream import StreamJournal
from executors.messages import MalformedCall, ModelReply, ProviderBlocks, ToolCall
from executors.usage import Usage
from tests.executors.journals import PAID, file_call, key, opened, segments

pytestmark = pytest.mark.anyio

LONG = "é" * 100_000
CALLS = (
    ToolCall(id="a", name="read", arguments='{"path":"x"}'),
    ToolCall(id="b", name="read", arguments="5"),
)
CALLING = ModelReply(
    text="I look.",
    stop="tool_use",
    usage=Usage(output=5),
    calls=CALLS,
    blocks=ProviderBlocks(provider="openai", model="m", data='{"reasoning_content":"hm"}'),
)
MALFORMED = ModelReply(
    text="",
    stop="tool_use",
    malformed=MalformedCall(name="read", raw='{"path":', reason="it ends at 8"),
)
ELSEWHERE = ModelReply(text="ok", stop="end", answered_by="scripted:b", unsettled=2, requests=3)


async def run_tool(
    journal: Journal, tool: ContentKey, result: str, *, failed: bool = False
) -> None:
    journal.tool_begun(tool, name="read")
    await journal.tool_done(tool, result=result, failed=failed)


@pytest.mark.parametrize("result", ["", "text", "half \ud83d a pair", LONG])
@pytest.mark.parametrize("failed", [False, True])
async def test_what_a_tool_gave_is_found_in_the_session_and_in_later_ones(
    tmp_path: Path, result: str, failed: bool
) -> None:
    done = ToolDone(result=result, failed=failed)
    async with opened(tmp_path) as journal:
        assert journal.tool_found(key(1)) is None
        await run_tool(journal, key(1), result, failed=failed)
        assert journal.tool_found(key(1)) == done
        assert journal.find(key(1)) is None
    for _ in range(2):
        async with opened(tmp_path) as journal:
            assert journal.tool_found(key(1)) == done
            assert journal.tool_found(key(2)) is None
            assert journal.find(key(1)) is None
            assert journal.warnings == ()


async def test_a_tool_that_was_killed_is_known_to_have_begun(tmp_path: Path) -> None:
    journal = RunJournal.open(tmp_path)
    journal.tool_begun(key(1), name="write")
    # Nothing more is written: what a killed process leaves.
    async with opened(tmp_path) as later:
        assert later.tool_found(key(1)) == ToolBegun()
        await run_tool(later, key(1), "again")
        assert later.tool_found(key(1)) == ToolDone(result="again", failed=False)
    await journal.aclose()


async def test_a_torn_result_is_a_tool_that_began(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await run_tool(journal, key(1), "done")
    (segment,) = segments(tmp_path)
    segment.write_bytes(segment.read_bytes()[:-3])
    async with opened(tmp_path) as journal:
        assert journal.tool_found(key(1)) == ToolBegun()


async def test_a_result_whose_blob_is_gone_is_a_tool_that_began(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await run_tool(journal, key(1), LONG)
    assert segments(tmp_path)[0].stat().st_size < 1_000
    for blob in (tmp_path / "blobs").iterdir():
        blob.unlink()
    async with opened(tmp_path) as journal:
        assert journal.tool_found(key(1)) == ToolBegun()


async def test_an_index_of_before_tools_is_made_again(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    async with opened(tmp_path) as journal:
        await run_tool(journal, key(1), "done")
    async with opened(tmp_path):
        pass
    with closing(sqlite3.connect(tmp_path / "index.sqlite", isolation_level=None)) as file:
        file.execute("DROP TABLE tools")
        file.execute("PRAGMA user_version = 1")
    async with opened(tmp_path) as journal:
        assert journal.tool_found(key(1)) == ToolDone(result="done", failed=False)


@pytest.mark.parametrize("line", [begun_line(key(1), "n"), done_line(key(1), "x", failed=False)])
def test_lines_of_tools_are_of_kinds_that_older_readers_pass_over(line: bytes) -> None:
    kind = line[2:3].decode()
    assert kind not in "iafvng"
    assert not isinstance(read_line(line), Unknown)


@pytest.mark.parametrize(
    "reply", [CALLING, MALFORMED, ELSEWHERE], ids=["calls", "malformed", "by another"]
)
async def test_all_of_a_reply_comes_back(tmp_path: Path, reply: ModelReply) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), reply)
        found = journal.find(key(1))
        assert found is not None
        assert found.reply == reply
    async with opened(tmp_path) as journal:
        found = journal.find(key(1))
        assert found is not None
        assert found.reply == reply
    assert [one for _, one, _ in answers(tmp_path)] == [reply]
    assert Replay(tmp_path).find(key(1)) == found


async def test_a_long_reply_with_calls_comes_back_whole(tmp_path: Path) -> None:
    call = ToolCall(id="a", name="write", arguments=f'{{"text":"{LONG}"}}')
    reply = ModelReply(text="", stop="tool_use", calls=(call,))
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), reply)
    assert segments(tmp_path)[0].stat().st_size < 1_000
    async with opened(tmp_path) as journal:
        found = journal.find(key(1))
        assert found is not None
        assert found.reply == reply


async def test_calls_that_were_cut_are_not_given_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), ModelReply(text="", stop="tool_use"))
        await file_call(journal, key(2), ModelReply(text="", stop="max_tokens", calls=CALLS))
        assert (journal.find(key(1)), journal.find(key(2))) == (None, None)
    async with opened(tmp_path) as journal:
        assert (journal.find(key(1)), journal.find(key(2))) == (None, None)


async def test_a_replay_gives_what_tools_gave_and_runs_none(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await run_tool(journal, key(1), "done")
        await run_tool(journal, key(2), LONG, failed=True)
        journal.tool_begun(key(3), name="write")
    replay = Replay(tmp_path)
    assert replay.tool_found(key(1)) == ToolDone(result="done", failed=False)
    assert replay.tool_found(key(2)) == ToolDone(result=LONG, failed=True)
    assert replay.tool_found(key(3)) == ToolBegun()
    with pytest.raises(ReplayMiss):
        replay.tool_found(key(4))
    with pytest.raises(ReplayMiss):
        replay.tool_begun(key(3), name="write")


async def test_what_tools_gave_can_be_erased_and_the_rest_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await run_tool(journal, key(1), "CANARY" + LONG)
        await run_tool(journal, key(2), LONG)
        await run_tool(journal, key(3), "short")
    assert forget(tmp_path, set(), calls={key(1)}) == Forgotten(notes=0, answers=1, blobs=1)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"CANARY" not in path.read_bytes()
    async with opened(tmp_path) as journal:
        assert journal.tool_found(key(1)) == ToolBegun()
        assert journal.tool_found(key(2)) == ToolDone(result=LONG, failed=False)
        assert journal.tool_found(key(3)) == ToolDone(result="short", failed=False)


async def test_a_worker_without_a_disk_has_its_tools_filed_by_the_coordinator(
    tmp_path: Path,
) -> None:
    import anyio

    async with opened(tmp_path) as journal, anyio.create_task_group() as group:
        stream = StreamJournal(journal.take)
        group.start_soon(stream.run)
        assert stream.tool_found(key(1)) is None
        await run_tool(stream, key(1), "short")
        await run_tool(stream, key(2), LONG)
        stream.tool_begun(key(3), name="write")
        await stream.aclose()
        assert stream.tool_found(key(1)) == ToolDone(result="short", failed=False)
        assert stream.tool_found(key(3)) == ToolBegun()
        for found in (journal,):
            assert found.tool_found(key(2)) == ToolDone(result=LONG, failed=False)
            assert found.tool_found(key(3)) == ToolBegun()
        with pytest.raises(InternalError):
            await journal.take(b'{"d":"00","x":"y"}\n')
    async with opened(tmp_path) as journal:
        assert journal.tool_found(key(2)) == ToolDone(result=LONG, failed=False)


async def test_what_calls_drew_is_unmoved_by_tools(tmp_path: Path) -> None:
    async with opened(tmp_path) as journal:
        await file_call(journal, key(1), CALLING)
        await run_tool(journal, key(2), "done")
    async with opened(tmp_path) as journal:
        assert (journal.spent.calls, journal.spent.tokens) == (1, PAID.tokens)
        assert journal.lost == ()


async def test_no_journal_remembers_no_tool() -> None:
    journal = NoJournal()
    await run_tool(journal, key(1), "done")
    assert journal.tool_found(key(1)) is None
