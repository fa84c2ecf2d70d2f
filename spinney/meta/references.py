"""How objects are named to each other: kind, reference, precondition."""

from __future__ import annotations

from spinney.meta.records import Record


class GroupKind(Record, order=True):
    """A kind, whatever its version. The core group is the empty string."""

    group: str
    kind: str

    def __str__(self) -> str:
        """Spell it as kubectl does: `PodCliqueSet.grove.io`."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


class Ref(Record, order=True):
    """One object by name. Namespace "" is cluster scope. Sorts by kind, namespace, name."""

    kind: GroupKind
    namespace: str
    name: str

    def __str__(self) -> str:
        """Spell it for people: `PodCliqueSet default/chat`."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.kind} {place}"


class Precondition(Record):
    """What must still hold when an action is carried out; unset parts hold always."""

    uid: str | None = None
    resource_version: str | None = None
