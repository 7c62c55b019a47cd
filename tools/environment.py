"""Make `.venv` from the locks, or leave it alone when it is already what the locks say.

    python3 tools/environment.py demo    # what the demo needs: wheels alone, no compiler
    python3 tools/environment.py full    # everything, with tools and both local back ends

Runs before anything is installed, so it uses the standard library alone. Each level leaves a stamp
with the digest of all that it was made from; the same digest means there is nothing to do.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BUILD = ROOT / "requirements/build.txt"
STEPS = {
    "demo": [ROOT / "requirements/demo.txt"],
    "full": [ROOT / "requirements/native.txt", ROOT / "requirements/lock.txt"],
}
# What an editable install is made from, besides the locks.
METADATA = (ROOT / "pyproject.toml", ROOT / "rlm/_version.py")

APT = "apt-get install -y make python3-venv g++"
COMPILED = "llama_cpp"
# The same machine code on every x86-64 of the last ten years, so that two machines read out the same
# numbers and a wheel that pip has kept runs on both; and no pictures, which nothing here reads.
COMPILE = {"CMAKE_ARGS": "-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF"}


class Missing(Exception):
    """The machine lacks something that no package here can bring."""


def make_environment(level: str) -> None:
    """Bring `.venv` up to `level`, one of the keys of STEPS."""
    stamp, digest = VENV / f".stamp-{level}", made_from(level)
    if is_current(stamp, digest):
        return
    print(f"environment: making .venv for {level!r}", flush=True)
    started = time.monotonic()
    create_venv()
    if level == "full":
        require_compiler()
    install("--require-hashes", "-r", str(BUILD))
    for lock in STEPS[level]:
        install("--require-hashes", "-r", str(lock))
    install("--editable", str(ROOT))
    stamp.write_text(digest, encoding="ascii")
    print(f"environment: ready after {time.monotonic() - started:.0f} s", flush=True)


def made_from(level: str) -> str:
    """Digest of this Python and of every file that decides what gets installed."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {COMPILE}".encode())
    for file in (BUILD, *STEPS[level], *METADATA):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def is_current(stamp: Path, digest: str) -> bool:
    """Whether the stamp was left by the same digest and the environment still runs."""
    try:
        return stamp.read_text(encoding="ascii") == digest and python_of_venv() is not None
    except OSError:
        return False


def create_venv() -> None:
    """Create `.venv`, or create it anew when it belongs to another Python or no longer runs."""
    if python_of_venv() == sys.version_info[:2]:
        return
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        raise Missing(f"{sys.executable} cannot make virtual environments", APT)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)


def python_of_venv() -> tuple[int, int] | None:
    """Major and minor version of the Python in `.venv`; None when there is none that runs."""
    try:
        answer = subprocess.run(
            [interpreter(), "-c", "import sys, pip; print(*sys.version_info[:2])"],
            capture_output=True,
            check=True,
            encoding="ascii",
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    major, minor = map(int, answer.stdout.split())
    return major, minor


def require_compiler() -> None:
    """Say what is missing before several minutes of installing end in a compiler's absence."""
    if any(map(shutil.which, compilers())) or next(
        VENV.glob(f"lib/*/site-packages/{COMPILED}"), None
    ):
        return
    raise Missing("no C++ compiler was found, and llama-cpp-python exists as source only", APT)


def compilers() -> Iterator[str]:
    """Yield the names a C++ compiler is looked for under."""
    if chosen := os.environ.get("CXX"):
        yield chosen.split()[0]
    yield from ("c++", "g++", "clang++")


def install(*arguments: str) -> None:
    """Install without resolving anything: the locks are complete, and build tools are locked too."""
    command = [interpreter(), "-m", "pip", "install", "--quiet", "--no-input"]
    command += ["--disable-pip-version-check", "--no-deps", "--no-build-isolation", *arguments]
    parallel = {"CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)}
    # Build back ends look for cmake and ninja on the PATH: ours come first.
    path = {"PATH": f"{Path(interpreter()).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    subprocess.run(command, check=True, env=parallel | COMPILE | dict(os.environ) | path)


def interpreter() -> str:
    """Path of the Python in `.venv`."""
    return str(VENV / "bin/python")


def main() -> int:
    """Run for the level named on the command line."""
    match sys.argv[1:]:
        case [level] if level in STEPS:
            pass
        case given:
            print(f"environment: {given!r} is not one of {list(STEPS)}", file=sys.stderr)
            return 2
    try:
        make_environment(level)
    except Missing as missing:
        what, remedy = missing.args
        print(f"environment: {what}.\nOn Debian or Ubuntu:\n    {remedy}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failed:
        print(f"environment: this failed, see above: {failed.cmd!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
