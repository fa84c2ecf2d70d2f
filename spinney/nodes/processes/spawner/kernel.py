"""What is asked of the kernel that Python 3.11 has no function for."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_NODIRATIME = 2048
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SLAVE = 1 << 19
MS_RELATIME = 1 << 21

MNT_DETACH = 2

_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203, "s390x": 217, "riscv64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones."""
    _check(_libc.unshare(ctypes.c_int(flags)))


def enter_namespace(descriptor: int, kind: int) -> None:
    """Enter a namespace."""
    _check(_libc.setns(ctypes.c_int(descriptor), ctypes.c_int(kind)))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind),
        ctypes.c_ulong(flags),
        os.fsencode(options),
    )
    _check(result, target)


def unmount(target: str) -> None:
    """Take a mount away, once nobody uses it."""
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(MNT_DETACH)), target)


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root of this mount namespace, and put the former one at `old`."""
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, "no number known for pivot_root on this machine", new)
    _check(
        _libc.syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old)),
        new,
    )


def set_name(name: str) -> None:
    """Give this process the name that `ps` and `top` show; 15 bytes of it."""
    _libc.prctl(ctypes.c_int(_PR_SET_NAME), os.fsencode(name)[:15], 0, 0, 0)


def become_subreaper() -> None:
    """Have orphaned descendants become children of this process."""
    _check(_libc.prctl(ctypes.c_int(_PR_SET_CHILD_SUBREAPER), 1, 0, 0, 0))


def _check(result: int, subject: str | None = None) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject)
