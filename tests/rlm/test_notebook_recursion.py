"""The notebook of recursions runs from top to bottom, with no key and no network."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executors.models.local.weights import PACKAGED
from tests.rlm.kernels import Kernel, private_home

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "recursion.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


@pytest.fixture
def kernel(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("k")  # short: the path of a socket has little room
    private_home(folder, monkeypatch)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    kernel = Kernel(folder, cwd=NOTEBOOK.parent, patience=300)
    yield kernel
    kernel.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(PACKAGED.find() is None, reason="no weights here")
def test_each_cell_runs_and_none_fails(kernel: Kernel) -> None:
    printed = ""
    for cell in CELLS:
        if cell["cell_type"] == "code":
            printed = kernel.run("".join(cell["source"]))
            assert not kernel.failed, printed
    assert "rejected: ['made up'" in printed


def test_no_output_is_kept_in_the_file() -> None:
    code = [cell for cell in CELLS if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
