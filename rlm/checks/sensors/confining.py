"""Confining a process to its own folder, for code that a model wrote. Nothing but the standard library.

What holds from then on, for good:

- no sockets, no other processes, no signals to anybody, no tracing (a seccomp filter)
- files outside its folder are neither written nor read, save those that Python itself needs
  (Landlock, where the kernel has it)
- bounds on CPU time, memory, sizes of files and open files (rlimits)

None of it needs a privilege. Sources: seccomp(2), landlock(7), getrlimit(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["bound", "can_confine", "confine"]

_MACHINES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""machine -> (audit number, column below)"""
_REFUSED: Final = (
    (41, 198),  # socket
    (62, 129),  # kill
    (200, 130),  # tkill
    (234, 131),  # tgkill
    (129, 138),  # rt_sigqueueinfo
    (297, 240),  # rt_tgsigqueueinfo
    (424, 424),  # pidfd_send_signal
    (57, -1),  # fork
    (58, -1),  # vfork
    (59, 221),  # execve
    (322, 281),  # execveat
    (101, 117),  # ptrace
    (310, 270),  # process_vm_readv
    (311, 271),  # process_vm_writev
    (425, 425),  # io_uring_setup: its rings open sockets without the system call
    (272, 97),  # unshare
    (308, 268),  # setns
    (165, 40),  # mount
    (250, 219),  # keyctl
    (321, 280),  # bpf
    (302, 261),  # prlimit64, which reaches the bounds of other processes
    (438, 438),  # pidfd_getfd
    # What only root could do, for those who run as root.
    (161, 51),  # chroot
    (155, 41),  # pivot_root
    (166, 39),  # umount2
    (428, 428),  # open_tree
    (429, 429),  # move_mount
    (430, 430),  # fsopen
    (304, 265),  # open_by_handle_at
    (175, 105),  # init_module
    (313, 273),  # finit_module
    (176, 106),  # delete_module
    (246, 104),  # kexec_load
    (169, 142),  # reboot
    (227, 112),  # clock_settime
    (164, 170),  # settimeofday
    (170, 161),  # sethostname
)
_CLONE: Final = (56, 220)
_CLONE3: Final = 435
_THREAD: Final = 0x00010000
_X32: Final = 0x40000000  # numbers from here on belong to a second x86 call table
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM
_UNKNOWN: Final = 0x00050000 | errno.ENOSYS  # the C library falls back to clone
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 38, 22
_SECCOMP_MODE_FILTER: Final = 2
_SIGKILL: Final = 9

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READS: Final = (1 << 2) | (1 << 3)
_WRITES: Final = 1 << 1
_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
"""Version of Landlock -> how many rights over files it knows; 16 from version 5 on."""


def can_confine() -> bool:
    """Whether this kind of system is one that `confine` knows."""
    return sys.platform.startswith("linux") and platform.machine() in _MACHINES


def bound(*, seconds: int, memory: int) -> None:
    """Bound CPU time (seconds), memory and files (bytes) of this process."""
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: 64 << 20,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (least, least))
    if sys.platform.startswith("linux"):
        _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def confine(folder: str) -> list[str]:
    """Confine this process; return what it is kept from: "network", "processes", "files".

    Call it before any other thread exists: those that run already would stay free.
    """
    if not can_confine() or not _prctl(_PR_SET_NO_NEW_PRIVS, 1):
        return []
    kept = ["files"] if _keep_files(folder) else []
    program = ctypes.create_string_buffer(_program(platform.machine()))
    header = struct.pack("@HP", len(program.raw) // 8, ctypes.addressof(program))
    filtered = _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header)
    return [*kept, "network", "processes"] if filtered else kept


def _prctl(option: int, value: int, more: bytes | int = 0) -> bool:
    prctl = ctypes.CDLL(None).prctl
    third = ctypes.c_char_p(more) if isinstance(more, bytes) else ctypes.c_void_p(more)
    return bool(prctl(option, ctypes.c_ulong(value), third, None, None) == 0)


# ---------------------------------------------------------------- system calls


def _program(machine: str) -> bytes:
    """Return the filter: eight bytes an instruction (code, jump if true, jump if false, value)."""
    architecture, column = _MACHINES[machine]
    numbers = [row[column] for row in _REFUSED if row[column] >= 0]
    # Jumps count the instructions between: the four returns stand at the end.
    refused = len(numbers) + 4
    steps: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 0, refused + 3, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, refused + 1, 0, _X32),
    ]
    for done, number in enumerate(numbers):
        steps.append((_EQUAL, refused - done, 0, number))
    steps += [
        (_EQUAL, 5, 0, _CLONE3),
        (_EQUAL, 0, 2, _CLONE[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_ANY_BIT, 0, 1, _THREAD),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _UNKNOWN),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


# ---------------------------------------------------------------- files


def _keep_files(folder: str) -> bool:
    """Let this process see its folder and Python alone; False where there is no Landlock."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    every = (1 << _RIGHTS.get(version, 16)) - 1
    handled = struct.pack("<Q", every)
    rules = call(_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0)
    if rules < 0:
        return False
    try:
        granted = [(folder, every), *((path, _READS) for path in _needed())]
        granted += [("/dev/null", _WRITES | (1 << 2)), ("/dev/urandom", 1 << 2)]
        return all(_grant(rules, path, access) for path, access in granted) and (
            call(_RESTRICT_SELF, rules, 0) == 0
        )
    finally:
        os.close(rules)


def _grant(rules: int, path: str, access: int) -> bool:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return True  # nothing there to be seen
    try:
        rights = access if Path(path).is_dir() else access & ~(1 << 3)
        rule = struct.pack("<Qi", rights, opened)
        return bool(ctypes.CDLL(None).syscall(_ADD_RULE, rules, 1, rule, 0) == 0)
    finally:
        os.close(opened)


def _needed() -> Iterable[str]:
    """Return the places that Python and its packages load code from, and no more."""
    paths = sysconfig.get_paths()
    named = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    shared = {f"{prefix}/lib{bits}" for prefix in ("", "/usr") for bits in ("", "64")}
    own = f"{sys.base_prefix}/lib"
    return sorted({*named, *shared, own, "/etc/ld.so.cache", "/usr/share/zoneinfo"})
