"""Messages between the agent and what is below it: a little JSON, and descriptors beside it.

What may be large, a plan with its environment, travels in a file in memory.
"""

from __future__ import annotations

import array
import json
import os
import socket
from typing import TypeAlias, cast

Message: TypeAlias = dict[str, object]

BYTES_MAX = 65536
DESCRIPTORS_MAX = 8


def receive(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Return the next message with its descriptors; b"" once the other end is closed."""
    space = socket.CMSG_SPACE(DESCRIPTORS_MAX * 4)
    try:
        data, ancillary, _, _ = channel.recvmsg(BYTES_MAX, space, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return b"", []
    descriptors = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % 4])
    return data, list(descriptors)


def encode(message: Message) -> bytes:
    """Return a message as it travels."""
    return json.dumps(message).encode()


def decode(data: bytes) -> Message:
    """Return what a message says."""
    return cast(Message, json.loads(data))


def read_plan(descriptor: int) -> Message:
    """Return the plan in a file in memory, and close it."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return decode(file.read())


def write_plan(plan: Message) -> int:
    """Return the descriptor of a file in memory that holds a plan."""
    descriptor = os.memfd_create("spinney-plan", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(encode(plan))
    return descriptor
