"""Cutting a process off the network, for native code that reads private texts.

A seccomp filter refuses every new socket that is not a local (Unix) one, for the process and all
it starts, for good. It needs no privilege and works inside containers, where new network
namespaces are mostly forbidden. Source: seccomp(2) and its `struct seccomp_data`.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys
from typing import Final

__all__ = ["can_cut_network", "cut_network"]

_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EACCES
_AF_UNIX: Final = 1
# A ring of io_uring opens sockets without the system call `socket`.
_IO_URING_SETUP: Final = 425
# Numbers from here on belong to a second x86 call table, which would bypass the filter.
_X32: Final = 0x40000000
_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""machine -> (audit number, number of the system call `socket`)"""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16


def can_cut_network() -> bool:
    """Whether this kind of system is one that `cut_network` knows."""
    return sys.platform.startswith("linux") and platform.machine() in _ARCHITECTURES


def cut_network() -> bool:
    """Refuse network sockets from here on; False where the system offers no way.

    Call it before any other thread exists: those that run already would keep their network.
    """
    if not can_cut_network():
        return False
    program = ctypes.create_string_buffer(_program(*_ARCHITECTURES[platform.machine()]))
    header = struct.pack("@HP", len(program.raw) // 8, ctypes.addressof(program))
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = (ctypes.c_int, *[ctypes.c_void_p] * 4)
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0) == 0)


def _program(architecture: int, socket: int) -> bytes:
    """Return the filter: eight bytes an instruction (code, jump if true, jump if false, value)."""
    steps = (
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 0, 7, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 5, 0, _X32),
        (_EQUAL, 4, 0, _IO_URING_SETUP),
        (_EQUAL, 0, 2, socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    )
    return b"".join(struct.pack("<HBBI", *step) for step in steps)
