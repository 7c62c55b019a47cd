"""What a tool gave is erased with the record that it gives away."""

from pathlib import Path

import pytest

from executors.journal.forget import forget
from executors.journal.records import ToolBegun, ToolDone
from rlm.runs.traces import Traces, calls_that_tell
from tests.executors.journals import key, opened

pytestmark = pytest.mark.anyio

SECRET = "Mrs Miller of 12 Main Street called again about her refund."


@pytest.mark.parametrize("length", [0, 50_000], ids=["in a line", "in a blob"])
async def test_what_a_tool_gave_away_is_found_and_erased(tmp_path: Path, length: int) -> None:
    async with opened(tmp_path) as journal:
        for n, result in enumerate([f"found: {SECRET}" + "x" * length, "found: nothing"]):
            journal.tool_begun(key(n), name="search")
            await journal.tool_done(key(n), result=result, failed=False)
    telling = calls_that_tell(tmp_path, Traces(SECRET))
    assert telling == {key(0)}
    forget(tmp_path, set(), calls=telling)
    assert not any(
        SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )
    async with opened(tmp_path) as journal:
        assert journal.tool_found(key(0)) == ToolBegun()
        assert journal.tool_found(key(1)) == ToolDone(result="found: nothing", failed=False)
