"""A notebook kernel for tests: cells run as a notebook runs them."""

from pathlib import Path

import pytest

pytest.importorskip("ipykernel", reason="is the kernel of these tests")
client = pytest.importorskip("jupyter_client", reason="speaks to the kernel of these tests")
# The client keeps a loop for the life of the process: no test is to be blamed for its sockets.
pytest.importorskip("jupyter_core.utils").ensure_event_loop()

__all__ = ["Kernel", "private_home"]


class Kernel:
    """A kernel that runs cells.

    Args:
        folder: for its own files.
        cwd: where its cells run; None is the folder.
        patience: seconds that a cell may say nothing.
    """

    def __init__(self, folder: Path, *, cwd: Path | None = None, patience: float = 60) -> None:
        self.failed = False
        """A cell has failed."""
        self._patience = patience
        self._manager = client.KernelManager(kernel_name="python3", transport="ipc")
        self._manager.ip = str(folder / "k")
        self._manager.start_kernel(cwd=str(cwd or folder))
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)

    def begin(self, cell: str) -> str:
        return str(self._client.execute(cell))

    def end(self, cell: str) -> str:
        """Wait for the end of a cell; what it printed, or the name of its error."""
        printed = ""
        while True:
            message = self._client.get_iopub_msg(timeout=self._patience)
            if message["parent_header"].get("msg_id") != cell:
                continue
            match message["msg_type"], message["content"]:
                case "stream", {"name": "stdout", "text": str(text)}:
                    printed += text
                case "error", {"ename": str(name)}:
                    printed += name
                case "status", {"execution_state": "idle"}:
                    self.failed = self.failed or self._reply(cell) != "ok"
                    return printed
                case _:
                    pass

    def _reply(self, cell: str) -> str:
        """Return how a cell ended; groups of errors are printed, and no message says so."""
        while True:
            reply = self._client.get_shell_msg(timeout=self._patience)
            if reply["parent_header"].get("msg_id") == cell:
                return str(reply["content"]["status"])

    def run(self, cell: str) -> str:
        return self.end(self.begin(cell))

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()
        self._client.context.destroy(linger=0)


def private_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a kernel write nothing into anybody's home."""
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(folder))
