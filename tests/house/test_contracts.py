"""The import contracts cover what exists: a new module cannot stay outside them unnoticed."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# What must stay pure as soon as it is there: no model, engine, tool, gate or loop within reach.
PURE = {
    *(
        f"corpus.{name}"
        for name in (
            *("agenda", "chunks", "codes", "exact", "ledger", "questions", "records", "votes"),
            "windows",
        )
    ),
    *(
        f"planner.{name}"
        for name in (
            *(
                "completeness",
                "complexity",
                "families",
                "lookups",
                "marks",
                "plan",
                "plan_text",
                "results",
                "routes",
            ),
            *("rules", "shapes", "tree", "vocabulary"),
        )
    ),
    *(f"rlm.{name}" for name in ("outcome", "verification")),
    "rlm.checks.verdict",
    *(f"rlm.receipts.{name}" for name in ("lineage", "receipts")),
    "corpus.estimate",
}
IMPURE = {f"executors.{name}" for name in ("engine", "gate", "loop", "models", "tools")}


def contract(kind: str) -> dict[str, Any]:
    contracts: list[dict[str, Any]] = PROJECT["tool"]["importlinter"]["contracts"]
    (found,) = [contract for contract in contracts if contract["type"] == kind]
    return found


def existing(modules: set[str]) -> list[str]:
    paths = {module: ROOT / module.replace(".", "/") for module in modules}
    return sorted(
        m for m, path in paths.items() if path.is_dir() or path.with_suffix(".py").is_file()
    )


def test_each_pure_module_that_exists_is_held_to_it() -> None:
    forbidden = contract("forbidden")
    assert forbidden["source_modules"] == existing(PURE)
    assert forbidden["forbidden_modules"] == existing(IMPURE)


def test_only_the_pipeline_of_calls_may_reach_the_call_itself() -> None:
    protected = contract("protected")
    assert protected["protected_modules"] == ["executors.models.invoke"]
    assert protected["allowed_importers"] == ["executors.calls.calls"]
