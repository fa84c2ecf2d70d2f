"""Owner references: whose child an object is."""

from __future__ import annotations

from spinney.api.kinds import KINDS
from spinney.meta.documents import Document
from spinney.meta.metadata import ObjectMeta
from spinney.meta.references import GroupKind, Ref


def owner_reference(kind: GroupKind, owner: ObjectMeta) -> Document:
    """Return the reference by which an object is its controller's, and goes with it."""
    return {
        "apiVersion": KINDS[kind].names.api_version,
        "kind": kind.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_owned_by(metadata: ObjectMeta, owner_uid: str) -> bool:
    """Whether an object's controller is the owner of a uid."""
    return any(
        reference.controller and reference.uid == owner_uid
        for reference in metadata.owner_references
    )


def is_left_over(metadata: ObjectMeta, kind: GroupKind, owner: ObjectMeta) -> bool:
    """Whether an object belonged to one that had an owner's name before it, and goes as that did.

    Its name is waited for; there is nothing for anybody to do about it.
    """
    return any(
        reference.controller
        and (reference.kind, reference.name) == (kind.kind, owner.name)
        and reference.uid != owner.uid
        for reference in metadata.owner_references
    )


def controller_of(metadata: ObjectMeta) -> Ref | None:
    """Return which object controls another, None where it is nobody's."""
    for reference in metadata.owner_references:
        if reference.controller:
            group, _, _ = reference.api_version.rpartition("/")
            kind = GroupKind(group=group, kind=reference.kind)
            return Ref(kind=kind, namespace=metadata.namespace, name=reference.name)
    return None
