"""Lacking: why a pod or a container cannot be made as things are, told for people."""

from __future__ import annotations

from spinney.meta.errors import SpinneyError

CONFIG_ERROR = "CreateContainerConfigError"
NO_COMMAND = "NoCommand"
UNSUPPORTED = "UnsupportedOnLocalNode"
FAILED_MOUNT = "FailedMount"


class Lacking(SpinneyError):
    """The user: something is missing or not supported here; says what, and what to do."""

    def __init__(self, message: str, reason: str = CONFIG_ERROR) -> None:
        """Say what; `reason` is what containers wait with."""
        super().__init__(message)
        self.message = message
        self.reason = reason
