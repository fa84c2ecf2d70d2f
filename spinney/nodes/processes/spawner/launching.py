"""Starting a program: looked for in its own PATH, without a shell, with nothing inherited."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence

DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)
"""What Python, or we, made of these ends with us."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def launch(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    output: Sequence[int] = (),
    terminal: str = "",
) -> int:
    """Start a program in a session of its own; returns its process id, raises OSError.

    `output` are its standard streams: output and errors, or input before them. With `terminal`,
    the path of one, they are all that terminal, and it is the session's.
    """
    actions: list[tuple[int, int, str, int, int] | tuple[int, int, int]] = []
    if terminal:
        actions.append((os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0))
        actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    elif len(output) == 2:
        actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
        actions += [(os.POSIX_SPAWN_DUP2, output[0], 1), (os.POSIX_SPAWN_DUP2, output[1], 2)]
    else:
        actions += [(os.POSIX_SPAWN_DUP2, each, place) for place, each in enumerate(output)]
    return os.posix_spawn(
        find(command[0], environment.get("PATH", PATH)),
        list(command),
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=DEFAULT_SIGNALS,
    )


def find(program: str, path: str) -> str:
    """Return where a program is: a name with a slash is a path already. Raises OSError."""
    if "/" in program:
        return program
    refused = ""
    for folder in path.split(":"):
        place = os.path.join(folder or ".", program)
        if os.path.isfile(place):
            if os.access(place, os.X_OK):
                return place
            refused = refused or place
    if refused:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), refused)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
