"""The cluster itself: made for one run, or joined; and what of dask is used at all."""

from __future__ import annotations

import logging
import multiprocessing
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Protocol

import anyio

from executors.engine.dask_address import Joined, Local, Place, address_of
from executors.errors import ConfigError, MissingExtra

__all__ = ["Client", "Future", "cluster", "require_dask"]

_NEEDED: Final = ("dask", "distributed", "cryptography")
"""The last one makes the certificate of a local cluster."""
_CONNECT: Final = 10.0  # seconds until a scheduler has answered
_STARTING: Final = 120.0  # seconds that the processes of a local cluster may take to come up
_CLOSING: Final = 10.0  # seconds that a cluster may take to end

_SETTINGS: Final[dict[str, object]] = {
    # One lost worker is one lost unit: who gave it knows what was paid for, and dask does not.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.work-stealing": False,
    # The lines use it all the time, and each new connection is a TLS handshake.
    "distributed.scheduler.reuse-broadcast-comm": True,
    # Records are read in blocks and never kept; what is spilt would stay on the disk.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.profile.enabled": False,
    # dask opens a port for pages whether anybody wants them or not: it has none to show.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.admin.tick.interval": "500ms",
}


class Future(Protocol):
    """A unit that is out."""

    @property
    def status(self) -> str:
        """Is "pending", "finished", "error", "cancelled" or "lost"."""
        ...

    def exception(self) -> Awaitable[BaseException | None]:
        """Wait for its end; return what it raised."""
        ...


class Client(Protocol):
    """What of dask's client is used."""

    def submit(
        self,
        function: Callable[..., object],
        *arguments: object,
        key: str,
        workers: list[str],
        allow_other_workers: bool,
        retries: int,
        pure: bool,
    ) -> Future:
        """Send a function to a worker."""
        ...

    def run(
        self,
        function: Callable[..., object],
        *arguments: object,
        workers: list[str],
        on_error: str = "raise",
    ) -> Awaitable[dict[str, Any]]:
        """Call a function in workers at once, beside what they run."""
        ...

    def nthreads(self) -> Awaitable[dict[str, int]]:
        """Return who is there."""
        ...

    def cancel(self, futures: list[Future], *, force: bool) -> Awaitable[None]:
        """Want the results of these no more."""
        ...


def require_dask(place: Place) -> None:
    """Refuse a place without what it needs, which is looked for and not loaded.

    Raises:
        MissingExtra: dask is not installed.
    """
    if not all(map(find_spec, _NEEDED)):
        raise _missing(place)


def _missing(place: Place) -> MissingExtra:
    return MissingExtra(extra="dask", needed_for=f"engine={str(place)!r}")


@asynccontextmanager
async def cluster(place: Place) -> AsyncGenerator[Client]:
    """Start or join a cluster, and leave it at the end.

    Raises:
        MissingExtra: dask is not installed.
        ConfigError: it cannot be started, or nobody answers.
    """
    require_dask(place)
    try:
        dask, distributed = import_module("dask"), import_module("distributed")
        import_module("cryptography")
    except ImportError:
        raise _missing(place) from None
    with _quiet(), dask.config.set(_SETTINGS):
        match place:
            case Local():
                made = _local(distributed, place)
            case Joined():
                made = _joined(distributed, place)
        async with made as client:
            yield client


@asynccontextmanager
async def _local(distributed: Any, place: Local) -> AsyncGenerator[Client]:  # noqa: ANN401 - a module
    if multiprocessing.current_process().name != "MainProcess":
        raise ConfigError(
            f"engine={str(place)!r} was asked for while a worker of it started",
            hint="guard what your script runs with: if __name__ == '__main__':",
        )
    with tempfile.TemporaryDirectory(prefix="rlm-dask-", ignore_cleanup_errors=True) as scratch:
        processes = distributed.LocalCluster(
            n_workers=place.workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=distributed.Security.temporary(),
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,
            local_directory=scratch,
            silence_logs=logging.CRITICAL,
            asynchronous=True,
        )
        try:
            with anyio.fail_after(_STARTING):
                await processes
                client = await distributed.Client(processes, asynchronous=True)
        except (OSError, RuntimeError) as error:
            await _closed(processes)
            raise ConfigError(
                f"the workers of engine={str(place)!r} do not start: {error}",
                hint="guard what your script runs with: if __name__ == '__main__':",
            ) from error
        except BaseException:
            await _closed(processes)
            raise
        try:
            yield client
        finally:
            await _closed(client, processes)


@asynccontextmanager
async def _joined(distributed: Any, place: Joined) -> AsyncGenerator[Client]:  # noqa: ANN401 - a module
    security = distributed.Security()
    tls = bool(security.tls_ca_file and security.tls_client_cert)
    address = address_of(place, tls=tls)
    try:
        client = await distributed.Client(
            address, security=security, timeout=_CONNECT, asynchronous=True
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"no scheduler answers at {address!r}: {error}",
            where=f"engine={str(place)!r}",
            hint="start one with: dask scheduler --host HOST --port PORT; and workers for it",
        ) from error
    try:
        yield client
    finally:
        await _closed(client)


async def _closed(*those: Any) -> None:  # noqa: ANN401 - objects of dask's
    with anyio.move_on_after(_CLOSING, shield=True):
        for one in those:
            await one.close()


@contextmanager
def _quiet() -> Generator[None]:
    """Let dask be silent about workers that die: that is told as the run's own affair."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)
