"""Which file system a path lies on: SQLite's locks and shared memory are not kept over a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from executors.errors import RunDirError

__all__ = ["file_system", "is_remote", "refuse_remote"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_REMOTE: Final = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "beegfs_nodev",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
        "prl_fs",
        "pvfs2",
        "smb2",
        "smb3",
        "smbfs",
        "vboxsf",
        "wekafs",
    }
)
# File systems in user space name their kind after a dot; these reach another machine.
_REMOTE_FUSE: Final = frozenset(
    {"afp", "ceph", "ceph-fuse", "gcsfuse", "glusterfs", "goofys", "juicefs", "lustre", "moosefs"}
    | {"rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs", "davfs2", "cephfs", "mfs", "blobfuse2"}
)


def file_system(path: Path, mounts: str | None = None) -> str | None:
    """Return the kind of file system that a path lies on; None where the system does not say.

    Args:
        path: need not exist; its nearest folder that does decides.
        mounts: the text of /proc/self/mountinfo, for tests.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    wanted = path.resolve()
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        if (mount := _mount(line)) is None:
            continue
        point, kind = mount
        # The last of equal ones lies on top.
        if wanted.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = len(point.parts), kind
    return None if best is None else best[1]


def is_remote(kind: str | None) -> bool:
    """Say whether a kind of file system keeps its files on another machine."""
    if kind is None:
        return False
    outer, _, inner = kind.lower().partition(".")
    return outer in _REMOTE or (outer == "fuse" and inner in _REMOTE_FUSE)


def refuse_remote(directory: Path, mounts: str | None = None) -> None:
    """Refuse a directory on a network file system.

    Raises:
        RunDirError: it lies on one.
    """
    kind = file_system(directory, mounts)
    if is_remote(kind):
        raise RunDirError(
            f"the run directory {str(directory)!r} lies on a network file system ({kind})",
            where="its index is an SQLite file, which such a file system damages",
            hint="name a directory on a local disk with --run, and copy the run when it has ended",
        )


def _mount(line: str) -> tuple[Path, str] | None:
    """Return mount point and kind of one line; None when it is not one."""
    before, _, after = line.partition(" - ")
    fields, kind = before.split(" "), after.split(" ")[0]
    if len(fields) < 5 or not kind:
        return None
    point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])
    return Path(point), kind
