"""What this machine lets the runtime do, in sentences a person reads in `spinney status`."""

from __future__ import annotations

from spinney.meta.records import Record
from spinney.nodes.processes import cgroups
from spinney.nodes.processes.spawning import Isolation


class Abilities(Record):
    """What was found when the runtime began."""

    isolation: Isolation
    own_user: bool = False
    """Whether namespaces are had by way of a user namespace."""

    hosts_are_seen: bool = False
    """Whether containers see the names of pods in `/etc/hosts`."""

    has_groups: bool = False
    limits: tuple[str, ...] = ()
    """What control groups limit."""

    gpu_count: int = 0
    refusals: tuple[str, ...] = ()
    """Why there is not more, as the machine put it."""

    @property
    def processes(self) -> str:
        """How processes are contained."""
        if self.isolation is Isolation.PROCESSES_AND_MOUNTS:
            how = "by way of a user namespace" if self.own_user else "as root"
            return (
                f"each container has a PID namespace, {how}: whatever it leaves behind ends with it"
            )
        if self.has_groups:
            return "each container has a control group: whatever it leaves behind is ended by it"
        return (
            "each container has a keeper that its orphans fall to (no PID namespace, no control "
            "group): what escapes by killing its keeper is found by its environment"
        )

    @property
    def names(self) -> str:
        """How names of pods are resolved."""
        if not self.hosts_are_seen:
            return "names of pods stand only in the file $SPINNEY_HOSTS_FILE"
        how = "user and mount namespaces" if self.own_user else "mount namespaces, as root"
        return f"names of pods are in /etc/hosts of each container ({how})"

    @property
    def volumes(self) -> str:
        """Where volumes are."""
        if self.isolation is Isolation.NOTHING:
            return "volumes are not mounted: their folders are in $SPINNEY_VOLUME_<NAME>"
        return "volumes are mounted at their mountPath"

    @property
    def memory(self) -> str:
        """Whether memory is limited."""
        if cgroups.MEMORY in self.limits:
            return "memory limits are held by control groups"
        return "memory limits are not held: no control group with the memory controller"

    @property
    def process_count(self) -> str:
        """Whether the number of processes is limited."""
        if cgroups.PIDS in self.limits:
            return "the number of processes is limited by control groups"
        if self.own_user or self.isolation is Isolation.NOTHING:
            return "the number of processes is limited by RLIMIT_NPROC, which root does not heed"
        return "the number of processes is not limited: no control group with the pids controller"

    @property
    def gpus(self) -> str:
        """Which GPUs there are."""
        if self.gpu_count:
            count = f"{self.gpu_count} GPU{'s' if self.gpu_count > 1 else ''}"
            return f"{count}, each given to one container at a time"
        return "no GPUs were found"

    def sentences(self) -> tuple[str, ...]:
        """Return all of it."""
        return (
            self.processes,
            self.names,
            self.volumes,
            self.memory,
            self.process_count,
            self.gpus,
            *self.refusals,
        )
