"""Which cluster `--engine` names.

    dask                  processes on this machine, one a core
    dask:N                N processes on this machine
    dask://HOST:PORT      a scheduler that runs already

TLS is what dask's own configuration says (`distributed.comm.tls`). Off loopback it is wanted: what
travels is code to run and the records themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, TypeAlias

from executors.errors import ConfigError, ValidationError

__all__ = ["PLAIN", "Joined", "Local", "Place", "address_of", "place_of"]

PLAIN: Final = "RLM_DASK_PLAIN"
"""Environment variable that, set to 1, lets a cluster off loopback be joined without TLS."""

_MOST: Final = 1_024
_HERE: Final = re.compile(r"dask(?::(?P<workers>\d{1,5}))?")
_THERE: Final = re.compile(r"dask://(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+):(?P<port>\d{1,5})/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """A cluster of processes on this machine."""

    workers: int

    def __str__(self) -> str:
        return f"dask:{self.workers}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """A scheduler that runs already."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"dask://{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine, as far as its name says."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


Place: TypeAlias = Local | Joined


def place_of(engine: str) -> Place:
    """Return the cluster that an engine names.

    Raises:
        ValidationError: it names none.
    """
    if (here := _HERE.fullmatch(engine)) is not None:
        workers = int(here["workers"] or _cores())
        if 1 <= workers <= _MOST:
            return Local(workers=workers)
    elif (there := _THERE.fullmatch(engine)) is not None and 1 <= int(there["port"]) <= 65_535:
        return Joined(host=there["host"], port=int(there["port"]))
    raise ValidationError(
        f"engine={engine!r}",
        hint="choose one of local, dask, dask:WORKERS, dask://HOST:PORT",
    )


def address_of(place: Joined, *, tls: bool, environ: Mapping[str, str] | None = None) -> str:
    """Return the address as dask takes it.

    Args:
        tls: dask's configuration has a certificate for TLS.

    Raises:
        ConfigError: it is off loopback, and would be spoken to in plain text.
    """
    environ = os.environ if environ is None else environ
    if not (tls or place.loopback or environ.get(PLAIN) == "1"):
        raise ConfigError(
            f"the cluster {str(place)!r} is on another machine, and dask is not set up for TLS",
            where="whoever can listen there reads the records, and whoever can write runs code",
            hint="give dask its certificates (distributed.comm.tls.ca-file and .client, as in "
            f"DASK_DISTRIBUTED__COMM__TLS__CA_FILE), or accept it with {PLAIN}=1",
        )
    return f"{'tls' if tls else 'tcp'}://{place.host}:{place.port}"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
