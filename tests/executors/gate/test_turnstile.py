"""One after another in the order they came, whatever happens to those who wait."""

import threading

import anyio
import pytest

from executors.gate.people.turnstile import Turn, Turnstile

pytestmark = pytest.mark.anyio

ALONE = Turn(waited=False, abandoned=False)


async def test_whoever_comes_alone_does_not_wait() -> None:
    it = Turnstile()
    for _ in range(2):
        async with it.turn() as turn:
            assert turn == ALONE


async def test_the_order_is_that_of_arrival() -> None:
    it, order = Turnstile(), list[int]()

    async def come(number: int) -> None:
        async with it.turn() as turn:
            assert turn.waited == (number > 0)
            await anyio.lowlevel.checkpoint()
            order.append(number)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(come, number)
    assert order == list(range(6))


async def test_who_is_cancelled_in_line_holds_up_nobody() -> None:
    it = Turnstile()
    async with anyio.create_task_group() as group, it.turn():
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with it.turn():
                raise AssertionError
        group.cancel_scope.cancel()
    async with it.turn() as turn:
        assert turn == ALONE


async def test_who_is_cancelled_as_it_is_called_passes_the_turn_on() -> None:
    it, scope, came = Turnstile(), anyio.CancelScope(), anyio.Event()

    async def cancelled_when_called() -> None:
        with scope:
            async with it.turn():
                raise AssertionError

    async def after_it() -> None:
        async with it.turn():
            came.set()

    async with anyio.create_task_group() as group:
        async with it.turn():
            group.start_soon(cancelled_when_called)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(after_it)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
        with anyio.fail_after(5):
            await came.wait()


async def test_those_in_line_hear_that_nobody_is_there() -> None:
    it, turns = Turnstile(), list[Turn]()

    async def come() -> None:
        async with it.turn() as turn:
            turns.append(turn)

    async with anyio.create_task_group() as group:
        async with it.turn():
            group.start_soon(come)
            await anyio.wait_all_tasks_blocked()
            it.walk_away()
        await anyio.wait_all_tasks_blocked()
        group.start_soon(come)
    assert turns == [Turn(waited=True, abandoned=True), ALONE]


def test_loops_of_several_threads_share_one() -> None:
    it, inside, most = Turnstile(), list[int](), list[int]()

    async def come() -> None:
        for _ in range(50):
            async with it.turn():
                inside.append(1)
                most.append(len(inside))
                await anyio.lowlevel.checkpoint()
                inside.pop()

    threads = [threading.Thread(target=anyio.run, args=(come,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(most), max(most)) == (150, 1)
