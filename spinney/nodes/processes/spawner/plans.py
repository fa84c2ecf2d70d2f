"""What a keeper is told of its container, as it travels: plain JSON, read without schemas."""

from __future__ import annotations

from typing import TypedDict


class MountPlan(TypedDict):
    """One folder or file to be seen at a path."""

    source: str
    target: str
    read_only: bool


class Plan(TypedDict):
    """One container."""

    title: str
    """What `ps` shows of the keeper."""

    command: list[str]
    environment: dict[str, str]
    directory: str
    own_mounts: bool
    hostname: str
    mounts: list[MountPlan]
    scratch: str
    """An empty folder for what mounting needs."""

    groups: list[str]
    """Files of control groups to write one's process id to."""

    files_max: list[int]
    """The soft and hard limit of open files; empty to leave it."""

    processes_max: int
    """How many processes the user may have from here on; 0 to leave it."""


class ExecPlan(TypedDict):
    """A command to be run beside a container."""

    command: list[str]
    environment: dict[str, str]
    terminal: str
    """The path of the terminal it gets; "" for none."""
