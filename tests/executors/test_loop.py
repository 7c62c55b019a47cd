"""The worker: asks, runs what is called for, and ends in exactly one way."""

import pytest

from executors.loop import Ended, Finished
from tests.executors.workers import Shop, a_tool, call, calls, is_sealed, said

pytestmark = pytest.mark.anyio


async def test_an_answer_without_calls_is_the_end() -> None:
    shop = Shop(["four"])
    worked = await shop.work()
    assert isinstance(worked, Finished)
    assert worked.text == "four"
    assert [turn.role for turn in worked.log.messages] == ["system", "user", "assistant"]


async def test_what_a_tool_gave_is_what_the_model_reads_next() -> None:
    shop = Shop([calls(call("look", {"at": "sky"})), said("blue")], a_tool("look"))
    worked = await shop.work()
    assert isinstance(worked, Finished)
    assert worked.text == "blue"
    assert shop.results() == ["look"]
    assert is_sealed(worked.log.messages)
    assert worked.log.tool_calls == {"look": 1}
    assert shop.ends() == [("look", "done")]


async def test_a_denied_row_of_calls_ends_it() -> None:
    shop = Shop([calls("gone")] * 3)
    worked = await shop.work()
    assert isinstance(worked, Ended)
    assert (worked.reason, worked.detail) == ("stuck", "gone")
