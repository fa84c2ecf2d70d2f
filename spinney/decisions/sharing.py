"""Sharing: which ResourceClaims a level of a set has to make, and which it has too many of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from spinney.api import groupkinds
from spinney.api.core.resourceclaims import ResourceClaim, ResourceClaimTemplate
from spinney.api.status import LastError
from spinney.api.templates import PodCliqueSetTemplateSpec
from spinney.decisions.actions import Action, Create, Delete
from spinney.decisions.making import claims
from spinney.decisions.making.claims import Claim, Template
from spinney.meta.documents import Document, object_at
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref

TEMPLATE_NOT_FOUND = "ERR_RESOURCE_CLAIM_TEMPLATE_NOT_FOUND"


class Shared(Record):
    """What is there of a level's claims."""

    claims: tuple[ResourceClaim, ...] = ()
    """Its claims, sorted by name."""

    templates: tuple[ResourceClaimTemplate, ...] = ()
    """Claim templates beside the set that its entries mean."""

    holders: tuple[ObjectMeta, ...] = ()
    """Claims at names it needs that are not its own; nothing that would use them is made."""


class Sharing(Record):
    """What has to be done about them."""

    actions: tuple[Action, ...] = ()
    reasons: tuple[str, ...] = ()
    errors: tuple[LastError, ...] = ()


NOTHING = Sharing()


def outside_templates(wanted: Iterable[Claim]) -> tuple[Template, ...]:
    """Return the claim templates that stand beside the set, each once."""
    return tuple(dict.fromkeys(claim.template for claim in wanted if claim.template.namespace))


def decide(
    wanted: Sequence[Claim],
    shared: Shared,
    template: PodCliqueSetTemplateSpec,
    kind: GroupKind,
    owner: ObjectMeta,
    now: datetime,
    in_use: Collection[str] = (),
) -> Sharing:
    """Return what to do about the claims of one level, whose object is their owner.

    Claims that are there are left as they are: what they ask for is granted already. Those `in_use`
    stay, wanted or not.
    """
    there = {claim.metadata.name: claim for claim in shared.claims}
    held_by_others = {holder.name for holder in shared.holders}
    actions: list[Action] = []
    errors: list[LastError] = []
    for claim in wanted:
        if claim.name in there or claim.name in held_by_others:
            continue
        spec = _spec(claim.template, shared, template)
        if spec is None:
            text = (
                f"ResourceClaim {claim.name} cannot be made: there is no ResourceClaimTemplate "
                f"{claim.template.namespace}/{claim.template.name}; create it"
            )
            errors.append(LastError(code=TEMPLATE_NOT_FOUND, description=text, observed_at=now))
            continue
        actions.append(Create(document=claims.document(claim, kind, owner, spec)))
    names = {claim.name for claim in wanted} | {*in_use}
    for name, held in there.items():
        if name not in names and held.metadata.deletion_timestamp is None:
            ref = Ref(kind=groupkinds.CLAIM, namespace=owner.namespace, name=name)
            actions.append(Delete(target=ref, only_if=Precondition(uid=held.metadata.uid)))
    reasons = (f"{len(actions)} shared claims have to be made or go",) if actions else ()
    told = tuple(error.description for error in errors)
    return Sharing(actions=tuple(actions), reasons=(*reasons, *told), errors=tuple(errors))


def _spec(
    template: Template, shared: Shared, set_template: PodCliqueSetTemplateSpec
) -> Document | None:
    if not template.namespace:
        return claims.own_spec(set_template, template.name)
    for found in shared.templates:
        metadata = found.metadata
        if (metadata.namespace, metadata.name) == (template.namespace, template.name):
            return object_at({**found.spec}, ["spec"])
    return None


def same_errors(before: tuple[LastError, ...], now: tuple[LastError, ...]) -> tuple[LastError, ...]:
    """Return the errors of this look; those that were told before keep the time they were seen."""
    known = {(error.code, error.description): error for error in before}
    return tuple(known.get((error.code, error.description), error) for error in now)
