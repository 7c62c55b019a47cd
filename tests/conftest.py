"""What holds for every test: no network, no user's settings, nothing left running."""

import asyncio
import gc
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import cast

import pytest
from hypothesis import settings

# A busy machine is no failure; a failure on a clean machine must come again on the next run.
settings.register_profile("house", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("house")

# A shell lets what runs in its background ignore Ctrl-C, and so do all children of that. Tests press it.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# ---------------------------------------------------------------- the network brake

_LOCAL_NAMES = frozenset({"", "localhost", "localhost."})
_ASKS_AWAY = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_refused: list[str] = []


class NetworkRefused(RuntimeError):
    """A test tried to reach another machine."""


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host in _LOCAL_NAMES:
        return True
    try:
        return ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse(what: str, host: object) -> None:
    _refused.append(f"{what} {host!r}")
    raise NetworkRefused(f"{what} {host!r}: tests reach loopback alone; use a fake server")


def _brake(event: str, args: tuple[object, ...]) -> None:
    """Audit hook: unlike a patched `socket`, it also sees calls made from C."""
    if not event.startswith("socket."):
        return
    if event in _ASKS_AWAY:
        if isinstance(args[1], tuple):  # a local socket's address is a path
            address = cast(tuple[object, ...], args[1])
            if not _is_local(address[0]):
                _refuse(event, address)
    elif event == "socket.getaddrinfo" and not _is_local(args[0]):
        _refuse(event, args[0])


sys.addaudithook(_brake)


@pytest.fixture(autouse=True)
def network_brake() -> Iterator[None]:
    """Fail a test that asked for another machine, even when the code under test hid the refusal."""
    _refused.clear()
    yield
    assert not _refused, f"tests reach loopback alone, this one tried: {_refused}"


@pytest.fixture
def refused_connections() -> list[str]:
    """What the brake refused so far; a test of the brake itself clears it."""
    return _refused


# ---------------------------------------------------------------- the user's settings

_PRIVATE = ("_API_KEY", "_TOKEN", "_PROXY", "_proxy")
_homes = itertools.count()


@pytest.fixture(autouse=True)
def nobodys_home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Point home and the XDG folders at a fresh place that does not exist yet; forget keys."""
    for name in [name for name in os.environ if name.endswith(_PRIVATE) or name[:4] == "RLM_"]:
        monkeypatch.delenv(name)
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    monkeypatch.setenv("HOME", str(home))
    for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    return home


# ---------------------------------------------------------------- nothing stays

_PATIENCE = 2.0  # seconds that a thread or process which was told to stop may take


@pytest.fixture(autouse=True)
def leaves_nothing(network_brake: None) -> Iterator[None]:
    """Fail a test that leaves a thread, a child process or a socket behind."""
    threads, children, sockets = set(threading.enumerate()), _children(), _sockets()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(_PATIENCE)
    left = {
        "threads": [t.name for t in set(threading.enumerate()) - threads],
        "child processes": sorted(_settled_children() - children),
        "sockets": sorted(_settled_sockets(sockets)),
    }
    assert not any(left.values()), f"left behind: { {k: v for k, v in left.items() if v} }"


@pytest.fixture(autouse=True)
def ends_its_tasks(request: pytest.FixtureRequest, leaves_nothing: None) -> None:
    """Fail an asynchronous test that leaves a task running in its loop."""
    if "anyio_backend" in request.fixturenames:
        request.getfixturevalue("_ends_its_tasks")


@pytest.fixture
async def _ends_its_tasks(anyio_backend: str) -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)  # a task that has just been cancelled takes one turn to end
    left = [task for task in asyncio.all_tasks() - before if not _is_runners_own(task)]
    assert not left, f"tasks left behind: {left}"


def _is_runners_own(task: "asyncio.Task[object]") -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "TestRunner" in code.co_qualname


def _settled_children() -> set[int]:
    """Children still there after a short wait for those that were told to stop."""
    for process in multiprocessing.active_children():
        process.join(_PATIENCE)
    return _children()


def _children() -> set[int]:
    """Process ids of our children, without the helper that multiprocessing keeps for itself."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread that has just ended
            found.update(map(int, listing.read_text(encoding="ascii").split()))
    return {pid for pid in found if b"multiprocessing.resource_tracker" not in _command(pid)}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _settled_sockets(before: set[str]) -> set[str]:
    """Sockets still there after a short wait for what closes them on another thread."""
    deadline = time.monotonic() + _PATIENCE
    while (left := _sockets() - before) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.02)
    return left


def _sockets() -> set[str]:
    found: set[str] = set()
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):  # the descriptor of this very listing
            link = str(descriptor.readlink())
            if link.startswith("socket:"):
                found.add(link)
    return found


# ---------------------------------------------------------------- asynchronous tests


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Asyncio is the one back end."""
    return "asyncio"
