"""How a container's end is told: exit code, reason, and a sentence that says what to do."""

from __future__ import annotations

import errno
import os
import signal as signals
from collections.abc import Sequence

from spinney.meta.records import Record

COMPLETED = "Completed"
ERROR = "Error"
OOM_KILLED = "OOMKilled"
START_ERROR = "StartError"
ADDRESS_IN_USE = "AddressInUse"
UNKNOWN = "ContainerStatusUnknown"

START_ERROR_CODE = 128
KILLED_CODE = 137


class End(Record):
    """How a container ended."""

    exit_code: int
    signal: int | None = None
    reason: str = ERROR
    message: str = ""


def end(code: int | None, *, is_out_of_memory: bool, was_killed: bool) -> End:
    """Return how a container ended, from what its keeper said.

    `code` is the exit code, or a signal as a negative number, or None where the keeper was gone
    before it could say. `was_killed` where we sent SIGKILL ourselves.
    """
    if code is None:
        return unknown("the process that watched over it is gone: it was killed from outside")
    if code >= 0:
        return End(exit_code=code, reason=ERROR if code else COMPLETED)
    number = -code
    name = _signal_name(number)
    message = ""
    reason = ERROR
    if is_out_of_memory and number == signals.SIGKILL:
        reason, message = OOM_KILLED, "it used more memory than its limit allows"
    elif number == signals.SIGKILL and not was_killed:
        message = (
            "it was killed by SIGKILL, which Spinney did not send: by the kernel, if the machine "
            "is out of memory (see `dmesg`), or by somebody else"
        )
    elif number == signals.SIGKILL:
        message = "it did not end by itself and was killed"
    elif number not in (signals.SIGTERM, signals.SIGINT):
        message = f"it was ended by {name}"
    return End(exit_code=128 + number, signal=number, reason=reason, message=message)


def unknown(why: str) -> End:
    """Return an end nobody saw."""
    return End(exit_code=KILLED_CODE, reason=UNKNOWN, message=why)


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def start_failure(
    stage: str, number: int, subject: str, text: str, command: Sequence[str], path: str
) -> End:
    """Return why a container could not be started.

    `stage` is what the keeper was doing, `number` the error the kernel gave about `subject`.
    """
    program = command[0] if command else ""
    if stage == "program":
        message = program_not_started(number, subject, text, program, path)
    elif stage == "directory":
        message = f'workingDir "{subject}": {_lowered(number, text)}'
    elif stage == "fork":
        message = f"no process could be made for it: {_lowered(number, text)}"
    else:
        message = f"it could not be isolated ({stage}): {text}"
    return End(exit_code=START_ERROR_CODE, reason=START_ERROR, message=message)


def program_not_started(number: int, subject: str, text: str, program: str, path: str) -> str:
    """Return why a program could not be started, as kubectl users know it."""
    told = f'exec: "{program}": '
    if number == errno.ENOENT and "/" not in program:
        if subject in ("", program):
            return f"{told}executable file not found in $PATH ({path})"
        return f"{told}{subject} is there, but the interpreter it names in its first line is not"
    if number == errno.ENOENT and os.path.lexists(program):
        return f"{told}it is there, but the interpreter it names in its first line is not"
    if number == errno.ENOENT:
        return f"{told}no such file or directory"
    if number == errno.EACCES:
        where = "" if subject in ("", program) else f" ({subject})"
        return f"{told}permission denied{where}: make it executable with chmod +x"
    if number == errno.ENOEXEC:
        return f"{told}exec format error: a script needs a first line such as #!/bin/sh"
    if number == errno.E2BIG:
        return f"{told}its arguments and environment are too long together"
    return f"{told}{_lowered(number, text)}"


def _lowered(number: int, text: str) -> str:
    told = os.strerror(number) if number else text
    return told[:1].lower() + told[1:]
