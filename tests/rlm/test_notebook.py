"""Cells of a real notebook kernel: sync twins, awaits, an interrupted cell and the one after it."""

import time
from collections.abc import Iterator

import pytest

from executors.models.fakes.acts import Act, Completion, Received
from executors.models.fakes.server import FakeServer
from tests.rlm.kernels import Kernel, private_home


@pytest.fixture
def kernel(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("k")  # short: the path of a socket has little room
    private_home(folder, monkeypatch)
    kernel = Kernel(folder)
    yield kernel
    kernel.close()


def yes_or_late(received: Received) -> Act:
    # A kernel whose loop idles hears an interrupt when something wakes it: an answer does.
    after = 60 if b"late?" in received.body else 3 if b"soon?" in received.body else 0
    return Completion(text='{"1": "yes"}', after=after)


COUNT = "rlm.count{}('{}?', list('abcdefghij'), model=model, window=1, passes=1, concurrency=4)"
SYNC = f"print(len({COUNT.format('_sync', 'is it')}.result.matched_ids))"
AWAIT = f"print(len((await {COUNT.format('', 'is it')}).result.matched_ids))"


@pytest.mark.case("K13-1", "K13-2", "S51")
@pytest.mark.parametrize("loops", ["asyncio.DefaultEventLoopPolicy", "uvloop.EventLoopPolicy"])
def test_cells_may_call_twins_and_await_in_any_order(kernel: Kernel, loops: str) -> None:
    if "uvloop" in loops:
        pytest.importorskip("uvloop", reason="makes the loops of this test")
    with FakeServer(yes_or_late) as server:
        first = f"import asyncio, {loops.partition('.')[0]}, rlm\n"
        first += f"asyncio.set_event_loop_policy({loops}())\n"
        first += f"model = 'openai+{server.base_url}:m'\n"
        assert kernel.run(first) == ""
        ends = [kernel.run(cell) for cell in (SYNC, SYNC, AWAIT, SYNC)]
    assert ends == ["10\n"] * 4


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        (COUNT.format("_sync", "late"), "KeyboardInterrupt"),
        (f"await {COUNT.format('', 'soon')}", "CancelledError"),
    ],
)
def test_an_interrupted_cell_leaves_no_request_running_and_the_next_one_works(
    kernel: Kernel, cell: str, error: str
) -> None:
    with FakeServer(yes_or_late) as server:
        kernel.run(f"import rlm; model = 'openai+{server.base_url}:m'")
        assert kernel.run(SYNC) == "10\n"
        begun = kernel.begin(cell)
        while server.requests < 14:
            time.sleep(0.02)
        kernel.interrupt()
        assert kernel.end(begun) == error
        time.sleep(0.3)
        assert (server.in_progress, server.requests) == (0, 14)
        assert [kernel.run(cell) for cell in (SYNC, AWAIT)] == ["10\n"] * 2
