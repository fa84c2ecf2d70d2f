"""What may be chosen of how processes are run."""

from __future__ import annotations

from datetime import timedelta

from spinney.meta.records import Record
from spinney.nodes.processes.spawning import Isolation


class Settings(Record):
    """How processes are run; what is None is found out."""

    isolation: Isolation | None = None
    """Which namespaces containers get; None for the most this machine gives."""

    own_user: bool | None = None
    """Whether they are had by way of a user namespace; None where we are not root."""

    control_groups: bool = True
    """Whether control groups are used where they can be made."""

    gpus: tuple[int, ...] | None = None
    """The numbers of the GPUs; None to ask nvidia-smi."""

    log_bytes_max: int = 10 * 1024 * 1024
    """How large a log's file grows before another is begun."""

    log_files_max: int = 3
    """How many files of one attempt's log are kept."""

    processes_max: int = 16384
    """How many processes and threads one container may have, where that can be held."""

    log_patience: timedelta = timedelta(seconds=2)
    """How long an end waits for output that somebody outside the container keeps open."""
