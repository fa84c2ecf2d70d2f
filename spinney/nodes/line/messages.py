"""What is asked over the line, and what is told on the connection that is held."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.meta.records import Record

HOLD, ABOUT, LEAVE = "hold", "about", "leave"
LOGS, EXEC, CONNECT = "logs", "exec", "connect"


class Ask(Record):
    """The first frame of a connection."""

    what: str
    world: str = ""
    """For `hold`: which world the control plane is of; an agent serves one."""

    version: str = ""
    pod_uid: str = ""
    container: str = ""
    command: tuple[str, ...] = ()
    terminal: bool = False
    port: int = 0
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None
    grace_seconds: int = 0


class Hello(Record):
    """What an agent says first on the connection that is held."""

    node: str
    process: int
    version: str
    since: datetime
    about: tuple[str, ...] = ()
    """What this machine lets it do, in sentences, for `spinney status`."""


class Used(Record):
    """What was measured."""

    pods: Mapping[str, PodUsage] = {}
    node: NodeUsage | None = None
