"""A bound on calls that cannot suffice is told before the first call."""

from dataclasses import replace
from pathlib import Path

import pytest

from executors.events import CallStarted, Event, Warned
from executors.models.base import ModelInfo
from rlm import Caps, Completed, Incomplete, count, plan_count, resume
from rlm.testing import ScriptedModel, judge_script

pytestmark = pytest.mark.anyio

TEXTS = [(f"r{n}", f"{'fire' if n % 7 == 0 else 'calm'} {n}") for n in range(80)]


def model() -> ScriptedModel:
    return ScriptedModel(judge_script(lambda text: "fire" in text))


class Told:
    """What was told of bounds, and how many calls had left by then."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._calls = 0

    def __call__(self, event: Event) -> None:
        match event:
            case CallStarted():
                self._calls += 1
            case Warned(code="bounds"):
                assert self._calls == 0
                self.words.append(event.message)
            case _:
                pass


async def test_a_bound_that_will_halt_the_run_is_told_with_the_calls_that_are_needed(
    tmp_path: Path,
) -> None:
    run, told, again = tmp_path / "run", Told(), Told()
    some = Caps(calls=12)
    stopped = await count("fire?", TEXTS, model=model(), caps=some, run=run, on_event=told)
    assert isinstance(stopped, Incomplete)
    needed = (await plan_count("fire?", TEXTS, model=model())).calls
    (words,) = told.words
    assert words == (
        f"the calls bound (12) will halt this run in session 1: about {needed} calls are needed; "
        "raise it with --max-calls (caps=Caps(calls=…))"
    )
    left = Caps(calls=19)
    assert isinstance(await resume(run, model=model(), caps=left, on_event=again), Incomplete)
    (words,) = again.words
    assert f"session 2: about {needed - 12} more calls are needed;" in words


async def test_of_a_bound_that_just_suffices_nothing_is_told(tmp_path: Path) -> None:
    run, told = tmp_path / "run", Told()
    await count("fire?", TEXTS, model=model(), caps=Caps(calls=12), run=run)
    caps = Caps(calls=20)
    assert isinstance(await resume(run, model=model(), caps=caps, on_event=told), Completed)
    replayed = await count(
        "fire?", TEXTS, model=model(), replay=run, caps=Caps(calls=1), on_event=told
    )
    assert isinstance(replayed, Completed)
    assert told.words == []


class Frank(ScriptedModel):
    """Says that it reports log-probabilities."""

    @property
    def info(self) -> ModelInfo:
        return replace(super().info, logprobs=True)


async def test_a_judge_that_asks_of_each_record_needs_a_call_for_each() -> None:
    told, asked = Told(), Frank("yes")
    plan = await plan_count("fire?", TEXTS, model=asked, judge="logprob", window=8)
    caps = Caps(calls=plan.calls - 1)
    await count("fire?", TEXTS, model=asked, judge="logprob", window=8, caps=caps, on_event=told)
    (words,) = told.words
    assert f"about {plan.calls} calls are needed" in words
