"""Cells of a real notebook kernel: sync twins, awaits, an interrupted cell and the one after it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from executors.models.fakes.acts import Act, Completion, Received
from executors.models.fakes.server import FakeServer

pytest.importorskip("ipykernel", reason="is the kernel of these tests")
client = pytest.importorskip("jupyter_client", reason="speaks to the kernel of these tests")
# The client keeps a loop for the life of the process: no test is to be blamed for its sockets.
pytest.importorskip("jupyter_core.utils").ensure_event_loop()


class Kernel:
    """A kernel that runs cells."""

    def __init__(self, folder: Path) -> None:
        self._manager = client.KernelManager(kernel_name="python3", transport="ipc")
        self._manager.ip = str(folder / "k")
        self._manager.start_kernel(cwd=str(folder))
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def begin(self, cell: str) -> str:
        return str(self._client.execute(cell))

    def end(self, cell: str) -> str:
        """Wait for the end of a cell; what it printed, or the name of its error."""
        printed = ""
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != cell:
                continue
            match message["msg_type"], message["content"]:
                case "stream", {"name": "stdout", "text": str(text)}:
                    printed += text
                case "error", {"ename": str(name)}:
                    printed += name
                case "status", {"execution_state": "idle"}:
                    return printed
                case _:
                    pass

    def run(self, cell: str) -> str:
        return self.end(self.begin(cell))

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        self._client.context.destroy(linger=0)


@pytest.fixture
def kernel(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("k")  # short: the path of a socket has little room
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(folder))
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
