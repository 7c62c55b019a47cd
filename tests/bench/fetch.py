"""Fetch the labelled corpora of the benchmarks: `python tests/bench/fetch.py [NAME ...]`.

`data/corpora.json` names each package with its version and hash, the member that holds the text, and the
true counts. What is research-use stays out of the repository: packages go to `.data/packages/`, and each
corpus is written as `.data/NAME.jsonl`, one record a line with `id`, `text` and `label`, in an order
shuffled by a seeded hash. A file is written only when its hash is the one in the catalogue.
"""

import argparse
import bz2
import csv
import gzip
import hashlib
import html
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

ROOT: Final = Path(__file__).parents[2]
CATALOGUE: Final = Path(__file__).parent / "data" / "corpora.json"
CACHE: Final = ROOT / ".data"
SEED: Final = "bench-1"

Row = tuple[str, str, str]
"""Where a record stands in its package, its text, its label."""


class FetchError(Exception):
    """A package cannot be had, or is not the one that was catalogued."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Package(_Entry):
    """A file of a registry, pinned by hash; kind "repository" is a file of ours."""

    kind: Literal["pip", "apt", "repository"]
    requirement: str
    file: str
    sha256: str
    licence: str


class Corpus(_Entry):
    """A labelled corpus inside a package, with what must come out of it."""

    package: str
    member: str
    """Path inside the package; one that ends in "/" is a folder with a folder for each label."""
    member_sha256: str
    """Of the member's bytes; of a folder, of the sorted lines "SHA-256  path"."""
    layout: Literal["folders", "tab", "reviews", "arff", "mails"]
    rename: dict[str, str] = {}
    """Our labels for those of the package, where they differ."""
    id_prefix: str | None
    """Put before a record's number; None keeps the package's own ids and order."""
    records: int
    empty: int
    """Records without text."""
    labels: dict[str, int]
    jsonl_sha256: str
    caution: str


class Task(_Entry):
    """A yes/no count over a corpus."""

    corpus: str
    positive: str
    question: str
    true: int


class Catalogue(_Entry):
    """All of `corpora.json`."""

    packages: dict[str, Package]
    corpora: dict[str, Corpus]
    tasks: dict[str, Task]


def catalogue() -> Catalogue:
    """Read the catalogue."""
    return Catalogue.model_validate_json(CATALOGUE.read_bytes())


# --- the packages


def sha256(data: bytes) -> str:
    """Hash as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def obtain(package: Package, cache: Path) -> Path:
    """Give the package's file, from the cache when it is there and whole.

    Raises:
        FetchError: The registry has it not, or has another file under its name.
    """
    if package.kind == "repository":
        return _checked(ROOT / package.file, package)
    kept = cache / "packages" / package.file
    if kept.exists():
        return _checked(kept, package)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        _download(package, Path(folder))
        _checked(Path(folder) / package.file, package).replace(kept)
    return kept


def _checked(file: Path, package: Package) -> Path:
    found = sha256(file.read_bytes()) if file.exists() else None
    if found != package.sha256:
        raise FetchError(
            f"the SHA-256 is {found!r}, not {package.sha256!r}\n  in {str(file)!r}\n"
            f"  remove that file, or check where {package.requirement!r} comes from"
        )
    return file


def _download(package: Package, folder: Path) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command = {
        "pip": [*pip, "--require-hashes", "--dest", str(folder), "-r", str(wanted)],
        "apt": ["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package.requirement],
    }[package.kind]
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise FetchError(f"{command[0]!r} is not here: fetch {package.file!r} elsewhere") from error
    if run.returncode:
        raise FetchError(f"{' '.join(command)!r} failed\n  {run.stderr.strip()[-600:]}")


def members(file: Path) -> Mapping[str, bytes]:
    """Read every regular file of a wheel, of a Debian package, or the file itself."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    if file.suffix == ".deb":
        command = ["dpkg-deb", "--fsys-tarfile", str(file)]
        packed = subprocess.run(command, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            files = ((m.name, archive.extractfile(m)) for m in archive if m.isreg())
            return {name.removeprefix("./"): f.read() for name, f in files if f}
    return {file.name: file.read_bytes()}


# --- the layouts


def _decode(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:  # one BBC article is Latin-1
        return data.decode("cp1252")


def folders(found: Mapping[str, bytes]) -> Iterator[Row]:
    """One text file a record, in a folder named for its label."""
    for path, data in found.items():
        yield path, _decode(data), path.split("/")[-2]


def tab(found: Mapping[str, bytes]) -> Iterator[Row]:
    """Orange's table: label and text, below three lines that describe the columns."""
    csv.field_size_limit(1 << 27)
    for data in found.values():
        rows = [
            row for row in csv.reader(io.StringIO(data.decode(), newline=""), delimiter="\t") if row
        ]
        for number, (label, text) in enumerate(rows[3:], start=1):
            yield str(number), text, label


def reviews(found: Mapping[str, bytes]) -> Iterator[Row]:
    """Film reviews as packed CSV; the plots among them are no reviews and are left out."""
    for data in found.values():
        table = csv.DictReader(io.StringIO(bz2.decompress(data).decode(), newline=""))
        for number, row in enumerate(table, start=1):
            if row["category"] != "plot":
                yield str(number), row["text"], row["category"]


ARFF_ROW: Final = re.compile(r"(?m)^'((?:[^'\\]|\\.)*)',([01])\r?$")
ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


def arff(found: Mapping[str, bytes]) -> Iterator[Row]:
    """Weka's rows: a quoted string with escapes, then 0 or 1."""
    for data in found.values():
        for number, row in enumerate(ARFF_ROW.finditer(data.decode("ascii")), start=1):
            text = re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), row[1])
            yield str(number), html.unescape(text), row[2]


def mails(found: Mapping[str, bytes]) -> Iterator[Row]:
    """The demo corpus of this repository: the subject stands above the body."""
    for data in found.values():
        for line in gzip.decompress(data).splitlines():
            mail = json.loads(line)
            yield mail["id"], f"{mail['subject']}\n\n{mail['body']}", mail["truth"]


LAYOUTS: Final = {
    "folders": folders,
    "tab": tab,
    "reviews": reviews,
    "arff": arff,
    "mails": mails,
}


# --- the corpora


def chosen(found: Mapping[str, bytes], corpus: Corpus) -> dict[str, bytes]:
    """Pick the member, or all files below it, and check their hash.

    Raises:
        FetchError: The bytes are not the catalogued ones.
    """
    if corpus.member.endswith("/"):
        picked = {path: found[path] for path in sorted(found) if path.startswith(corpus.member)}
        digest = sha256("".join(f"{sha256(d)}  {p}\n" for p, d in picked.items()).encode())
    else:
        picked = {corpus.member: found[corpus.member]}
        digest = sha256(found[corpus.member])
    if digest != corpus.member_sha256:
        raise FetchError(f"the SHA-256 of {corpus.member!r} is {digest!r}: the catalogue differs")
    return picked


def shuffled(rows: Iterable[Row], prefix: str) -> Iterator[Row]:
    """Shuffle by a seeded hash and number: neither id nor place tells the label."""
    order = sorted(rows, key=lambda row: sha256(f"{SEED}/{row[0]}".encode()))
    for number, (_, text, label) in enumerate(order, start=1):
        yield f"{prefix}{number:05}", text, label


def json_lines(rows: Iterable[Row], corpus: Corpus) -> bytes:
    """Write one JSON object a line, with our ids and labels."""
    if corpus.id_prefix is not None:
        rows = shuffled(rows, corpus.id_prefix)
    records = (
        {
            "id": key,
            "text": text.replace("\r\n", "\n").strip(),
            "label": corpus.rename.get(label, label),
        }
        for key, text, label in rows
    )
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode()


def counted(text: bytes) -> tuple[int, int, dict[str, int]]:
    """Count records, records without text, and each label, most frequent first."""
    records = [json.loads(line) for line in text.splitlines()]
    labels = Counter(str(record["label"]) for record in records)
    return len(records), sum(not record["text"] for record in records), dict(labels.most_common())


def fetch(name: str, known: Catalogue, cache: Path) -> bytes:
    """Make one corpus and check it against the catalogue.

    Raises:
        FetchError: A package is not to be had, or a hash or a count differs.
    """
    corpus = known.corpora[name]
    file = obtain(known.packages[corpus.package], cache)
    text = json_lines(LAYOUTS[corpus.layout](chosen(members(file), corpus)), corpus)
    if counted(text) != (corpus.records, corpus.empty, corpus.labels):
        raise FetchError(f"{name!r} counts {counted(text)!r}: the catalogue says otherwise")
    if sha256(text) != corpus.jsonl_sha256:
        raise FetchError(
            f"the text of {name!r} has SHA-256 {sha256(text)!r}: the catalogue differs"
        )
    return text


def main() -> int:
    """Fetch all corpora or those named; one that fails does not stop the others."""
    known = catalogue()
    parser = argparse.ArgumentParser(description="Fetch the benchmarks' corpora into .data/")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known.corpora))
    parser.add_argument("--cache", type=Path, default=CACHE)
    given = parser.parse_args()
    if unknown := set(given.names) - set(known.corpora):
        parser.error(f"no corpus is named {sorted(unknown)!r}; there are {sorted(known.corpora)!r}")
    given.cache.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in given.names or known.corpora:
        try:
            (given.cache / f"{name}.jsonl").write_bytes(fetch(name, known, given.cache))
        except FetchError as error:
            failed += 1
            sys.stderr.write(f"{name}: {error}\n")
        else:
            corpus = known.corpora[name]
            sys.stdout.write(f"{name}: {corpus.records:,} records, {len(corpus.labels)} labels\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
