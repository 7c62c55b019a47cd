"""The public fakes: what they answer, well and badly."""

import textwrap
from typing import Any, get_args

import pytest

import rlm
import rlm.testing
from corpus.criterion import Criterion
from corpus.prompts import ask_message, judge_system, messages
from corpus.questions import YesNo
from executors.errors import ServerFault
from executors.messages import Message, ModelReply, ModelRequest
from executors.models.openai.model import OpenAIModel
from rlm.testing import FakeServer, Fault, ScriptedModel, judge_script, judge_server

pytestmark = pytest.mark.anyio

GOOD = '{"1":"yes","2":"no","3":"unsure"}'
BAD: dict[Fault, tuple[str, str]] = {
    "leave-out": ('{"1":"yes","2":"no"}', "end"),
    "change-case": ('{"1":"YES","2":"NO","3":"UNSURE"}', "end"),
    "quote-alias": ('{"[\\"1\\"]":"yes","[\\"2\\"]":"no","[\\"3\\"]":"unsure"}', "end"),
    "invent": ('{"1":"yes","2":"no","3":"unsure","4":"yes","zzz":"yes"}', "end"),
    "prose": ("All of these look as if they match, more or less.", "end"),
    "fence": (f"```json\n{GOOD}\n```", "end"),
    "empty": ("", "end"),
    "refuse": ("I cannot help with that.", "refusal"),
    "truncate": (GOOD[: len(GOOD) // 2], "max_tokens"),
}


def decide(text: str) -> bool | None:
    return None if "smoke" in text else "fire" in text


def question(*, quotes: bool = False) -> ModelRequest:
    criterion = Criterion(question=YesNo(text="fire?"))
    system = judge_system(criterion, quotes=quotes)
    shown = ask_message(["a fire broke out", "all quiet", "smoke"])
    return ModelRequest(messages=messages(system, shown), max_tokens=64)


async def in_process(fault: Fault | None) -> ModelReply:
    return await ScriptedModel(judge_script(decide, lambda _: fault)).generate(question())


async def on_the_wire(fault: Fault | None) -> ModelReply:
    async with FakeServer(judge_server(decide, lambda _: fault)) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        try:
            return await model.generate(question())
        finally:
            await model.aclose()


def test_every_public_name_is_there_and_in_order() -> None:
    assert sorted(rlm.testing.__all__) == rlm.testing.__all__
    for name in rlm.testing.__all__:
        assert getattr(rlm.testing, name) is not None


def test_every_fault_is_shown_below() -> None:
    assert {*BAD, "fail"} == set(get_args(Fault))


async def test_a_rule_answers_for_each_text() -> None:
    for ask in (in_process, on_the_wire):
        reply = await ask(None)
        assert (reply.text, reply.stop) == (GOOD, "end")


@pytest.mark.parametrize("fault", BAD)
async def test_each_fault_is_the_same_in_process_and_on_the_wire(fault: Fault) -> None:
    for ask in (in_process, on_the_wire):
        reply = await ask(fault)
        assert (reply.text, reply.stop) == BAD[fault]


async def test_a_failure_is_a_server_fault_both_ways() -> None:
    for ask in (in_process, on_the_wire):
        with pytest.raises(ServerFault):
            await ask("fail")


async def test_faults_go_by_the_number_of_the_request() -> None:
    script = judge_script(decide, lambda number: "empty" if number == 1 else None)
    model = ScriptedModel(script)
    texts = [(await model.generate(question())).text for _ in range(3)]
    assert texts == [GOOD, "", GOOD]


async def test_quotes_are_words_of_the_text() -> None:
    model = ScriptedModel(judge_script(lambda _: "billing"))
    reply = await model.generate(question(quotes=True))
    assert reply.text.startswith('{"1":{"answer":"billing","quote":"a fire broke out"}')


async def test_a_request_that_shows_no_items_as_a_probe_is_answered_ok() -> None:
    probe = ModelRequest(messages=(Message(role="user", content="Say yes"),), max_tokens=8)
    assert (await ScriptedModel(judge_script(decide)).generate(probe)).text == "ok"
    async with FakeServer(judge_server(decide)) as server:
        model = OpenAIModel("m", base_url=server.base_url)
        assert (await model.generate(probe)).text == "ok"
        await model.aclose()


async def test_the_example_of_the_module_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = textwrap.dedent((rlm.testing.__doc__ or "").partition("yours:")[2])
    names: dict[str, Any] = {**vars(rlm.testing), "rlm": rlm}
    exec(code, names)  # our own example
    await names["main"]()
    assert capsys.readouterr().out == "1\n"
