"""What every sentence encoder shares: the protocol, the cut of a text, the weights, the slices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import file_digest
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from executors.errors import ConfigError, MissingExtra

__all__ = [
    "EXTRA",
    "PREPARATION",
    "Encoder",
    "Vectors",
    "Weights",
    "default_threads",
    "find_weights",
    "first_words",
    "in_slices",
]

Vectors = NDArray[np.float32]

EXTRA: Final = "encoder"
PREPARATION: Final = 1
"""Raised whenever `first_words` or an adapter prepares texts in another way: old vectors are stale."""

_CHARACTERS_A_WORD: Final = 12
_THREADS: Final = 2


class Encoder(Protocol):
    """Turns texts into vectors. Blocking; any number of threads may use one at once."""

    @property
    def name(self) -> str:
        """For people: "minilm-int8"."""
        ...

    @property
    def version(self) -> str:
        """Changes with whatever changes a vector: packages, weights, preparation of the text."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    @property
    def max_words(self) -> int:
        """Texts are cut to their first so many words; see `first_words`."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector a text, shape (texts, dimensions).

        Raises:
            ModelError: the engine failed; none of these texts has a vector.
        """
        ...

    def close(self) -> None:
        """Let go of weights and processes; the object may be used again afterwards."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights that a package brought, known by their hash."""

    path: Path
    version: str
    """Version of the package."""
    sha256: str

    @property
    def label(self) -> str:
        """Package version, the start of the hash, and how texts are prepared for it."""
        return f"{self.version}+{self.sha256[:12]}.p{PREPARATION}"


def find_weights(
    *, package: str, distribution: str, member: str, known: Mapping[str, str], needed_for: str
) -> Weights:
    """Find weights inside an installed package without importing it.

    Args:
        known: version of the distribution -> SHA-256 of the member.

    Raises:
        MissingExtra: the package is not installed.
        ConfigError: another version, or other weights than the known ones.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(extra=EXTRA, needed_for=needed_for)
    path = Path(spec.submodule_search_locations[0]) / member
    installed = version(distribution)
    if installed not in known:
        raise ConfigError(
            f"{distribution} {installed!r} is not a version that {needed_for} was tried with",
            where=str(path),
            hint=f"install one of: {', '.join(f'{distribution}=={v}' for v in known)}",
        )
    with path.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != known[installed]:
        raise ConfigError(
            f"the weights have SHA-256 {found!r}, expected {known[installed]!r}",
            where=str(path),
            hint=f"install {distribution}=={installed} again",
        )
    return Weights(path=path, version=installed, sha256=found)


def default_threads() -> int:
    """Return how many cores an encoder takes unless told: at most 2."""
    return min(_THREADS, len(os.sched_getaffinity(0)))


def first_words(text: str, words: int) -> str:
    """Return a text's first words, joined by single spaces, at most 12 characters a word on average.

    The bound in characters is for text without spaces: one line of base64 is one word. Doing it twice
    changes nothing.

    Example:
        >>> first_words("Dear  Sir,  your order is late", 3)
        'Dear Sir, your'
    """
    cut = " ".join(text.replace("\0", " ").split(None, words)[:words])[: words * _CHARACTERS_A_WORD]
    # A lone surrogate has no place in UTF-8, which the engines read.
    return cut.rstrip().encode("utf-8", "replace").decode("utf-8")


def in_slices(
    texts: Sequence[str],
    encode: Callable[[Sequence[str]], Vectors],
    *,
    dimensions: int,
    size: int,
    workers: int,
) -> Vectors:
    """Encode slices of `size` texts on up to `workers` threads and put the vectors in order.

    The threads end with the call: nothing stays behind.
    """
    vectors = np.empty((len(texts), dimensions), dtype=np.float32)
    slices = [slice(start, start + size) for start in range(0, len(texts), size)]

    def fill(part: slice) -> None:
        vectors[part] = encode(texts[part])

    if workers == 1 or len(slices) <= 1:
        for part in slices:
            fill(part)
        return vectors
    with ThreadPoolExecutor(min(workers, len(slices)), thread_name_prefix="rlm-encoder") as pool:
        for _ in pool.map(fill, slices):  # the first failure is raised here, the rest is dropped
            pass
    return vectors
