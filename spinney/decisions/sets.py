"""Sets: what a PodCliqueSet makes for its replicas, and what it takes away.

The set makes base and scaled PodGangs, PodCliques outside groups, scaling groups and what pods
need around them. What is inside a group is the group's to make, and pods are their PodClique's.
Each set replica runs one revision; its base PodGang is labelled with it before any child is made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from spinney.api import groupkinds, labels, names
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.api.core.horizontalpodautoscaler import HorizontalPodAutoscaler
from spinney.api.core.pod import Pod
from spinney.api.core.services import Service
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet, PodCliqueSetStatus, PodCliqueSetUpdateProgress
from spinney.api.podgang import PodGang
from spinney.api.status import LastError
from spinney.api.templates import PodCliqueSetTemplateSpec
from spinney.decisions import (
    copies,
    deadlines,
    places,
    reporting,
    revisions,
    set_status,
    sharing,
    startup,
    termination,
)
from spinney.decisions.actions import ACTIONS_MAX, Action, Create, Decision, Delete, Patch
from spinney.decisions.groups import conflict
from spinney.decisions.making import claims, owning, supporting
from spinney.decisions.making import cliques as clique_documents
from spinney.decisions.making import gangs as gang_documents
from spinney.decisions.places import CliquePlace, GroupPlace, Layout
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.decisions.sharing import Shared
from spinney.decisions.termination import Fate
from spinney.decisions.updates import progressing
from spinney.decisions.updates import replicas as replica_updates
from spinney.decisions.updates.replicas import Scene
from spinney.meta import records
from spinney.meta.documents import Document, Json
from spinney.meta.metadata import ObjectMeta
from spinney.meta.patches import merge_patch
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref

REVISION_NOT_FOUND = "ERR_REVISION_NOT_FOUND"


class Observation(Record):
    """What is seen of one set."""

    now: datetime
    set_: PodCliqueSet
    revisions: tuple[ControllerRevision, ...] = ()
    services: tuple[Service, ...] = ()
    autoscalers: tuple[HorizontalPodAutoscaler, ...] = ()
    present: tuple[Ref, ...] = ()
    """Which of its ServiceAccount, Role, RoleBinding and Secret are there."""

    groups: tuple[PodCliqueScalingGroup, ...] = ()
    cliques: tuple[PodClique, ...] = ()
    """Its PodCliques outside groups. All of these are sorted by name."""

    grouped: tuple[PodClique, ...] = ()
    """PodCliques of groups, of those replicas that say they have too little ready."""

    stuck: tuple[Pod, ...] = ()
    """The pods of the replica in update, where that gets on no more."""

    gangs: tuple[PodGang, ...] = ()
    holders: tuple[tuple[GroupKind, ObjectMeta], ...] = ()
    """Objects at names it needs that are not its own."""

    binding: ClusterTopologyBinding | None = None
    shared: Shared = Shared()
    settings: Settings = DEFAULTS


def decide(seen: Observation) -> Decision:
    """Return what to do about one set now."""
    set_ = seen.set_
    if set_.metadata.deletion_timestamp is not None:
        return _let_go(set_)
    if labels.SET_FINALIZER not in set_.metadata.finalizers:
        return _hold(set_)
    target = set_.status.current_generation_hash
    if not target or not revisions.is_generation_hash(target, set_.spec.template):
        return _note_template(seen)
    plan = _plan_of(seen)
    fate = fate_of(seen)
    plan.tear_down(fate)
    plan.remove_excess()
    progress = _progress(seen, plan, fate)
    status = _status(seen, plan, progress)
    changed = status != set_.status
    if replica_updates.is_new_turn(set_, progress):
        intent = reporting.document(status, set_status.COUNTERS)
        return Decision(intent=intent, reasons=("the next replica's turn has come",))
    if changed and reporting.must_go_first(set_.status.conditions):
        intent = reporting.document(status, set_status.COUNTERS)
        return Decision(intent=intent, reasons=(reporting.TOLD_FIRST,))
    told = progressing.turns(ref_of(set_), set_, status)
    return Decision(
        actions=(*told, *plan.actions)[:ACTIONS_MAX],
        status=reporting.document(status, set_status.COUNTERS) if changed else None,
        wake_after=deadlines.earliest(fate.wake_after, progressing.left(set_, seen.now) or None),
        reasons=tuple(plan.reasons),
    )


def scene_of(seen: Observation) -> Scene:
    """Return a set as its update sees it."""
    return _scene(seen, running_revisions(seen))


def _scene(seen: Observation, running: Mapping[int, str]) -> Scene:
    groups, cliques = _by_name(seen)
    return Scene(
        set_=seen.set_,
        layout=places.layout(seen.set_),
        running=running,
        cliques=cliques,
        groups=groups,
        gangs={gang.metadata.name: gang for gang in seen.gangs},
    )


def _progress(seen: Observation, plan: _Plan, fate: Fate) -> PodCliqueSetUpdateProgress | None:
    """Return how far the update of the set has come."""
    torn_down = {fall.index for fall in fate.falls}
    found = replica_updates.advanced(_scene(seen, plan.running), torn_down, seen.now)
    return progressing.resumed(seen.set_, found, seen.now)


def stuck_replica(seen: Observation) -> int | None:
    """Return the replica whose pods have to be looked at: its update does not get on."""
    left = progressing.left(seen.set_, seen.now)
    return replica_updates.current(seen.set_) if left is not None and not left else None


def fate_of(seen: Observation) -> Fate:
    """Return which replicas are torn down now, and when the next one would be."""
    if termination.delay_of(seen.set_) is None:
        return Fate()
    groups, cliques = _by_name(seen)
    layout = places.layout(seen.set_)
    return termination.fate_of_replicas(seen.set_, layout, groups, cliques, seen.now)


def replicas_in_trouble(seen: Observation) -> tuple[int, ...]:
    """Return the replicas whose grouped PodCliques have to be looked at too."""
    if termination.delay_of(seen.set_) is None:
        return ()
    groups, cliques = _by_name(seen)
    layout = places.layout(seen.set_)
    return termination.replicas_in_trouble(seen.set_, layout, groups, cliques)


def _by_name(
    seen: Observation,
) -> tuple[dict[str, PodCliqueScalingGroup], dict[str, PodClique]]:
    groups = {group.metadata.name: group for group in seen.groups}
    cliques = {clique.metadata.name: clique for clique in (*seen.cliques, *seen.grouped)}
    return groups, cliques


def _plan_of(seen: Observation) -> _Plan:
    """Return the plan for an observation, the one that was made to see who holds its names."""
    if _asked_for and _asked_for[0].seen is seen:
        return _asked_for.pop()
    return _planned_for(seen)


def _planned_for(seen: Observation) -> _Plan:
    plan = _Plan(seen)
    plan.make_surroundings()
    plan.share()
    for index in range(seen.set_.spec.replicas):
        plan.make_replica(index)
    return plan


def about_to_make(seen: Observation) -> tuple[Ref, ...]:
    """Return what the set would make now, so that it can be seen whether others have the names."""
    set_ = seen.set_
    if not set_.status.current_generation_hash:
        return ()
    plan = _planned_for(seen)
    _asked_for[:] = [plan]
    return tuple(plan.made[:ACTIONS_MAX])


_asked_for: list[_Plan] = []
"""The plan `about_to_make` made last, until `decide` takes it: of a large set it is dear to make.

It is of use only where the observation is that very one, as it is where nobody holds the names.
"""


def ref_of(set_: PodCliqueSet) -> Ref:
    """Return how a set is referred to."""
    return Ref(kind=groupkinds.SET, namespace=set_.metadata.namespace, name=set_.metadata.name)


def _with_finalizers(set_: PodCliqueSet, finalizers: Sequence[str], reason: str) -> Decision:
    metadata = set_.metadata
    only_if = Precondition(uid=metadata.uid, resource_version=metadata.resource_version)
    merge: Document = {"metadata": {"finalizers": [*finalizers] or None}}
    return Decision(
        actions=(Patch(target=ref_of(set_), merge=merge, only_if=only_if),), reasons=(reason,)
    )


def _let_go(set_: PodCliqueSet) -> Decision:
    finalizers = set_.metadata.finalizers
    if labels.SET_FINALIZER not in finalizers:
        return Decision()
    left = [item for item in finalizers if item != labels.SET_FINALIZER]
    return _with_finalizers(set_, left, "it is being deleted: all it made goes with it")


def _hold(set_: PodCliqueSet) -> Decision:
    held = [*set_.metadata.finalizers, labels.SET_FINALIZER]
    return _with_finalizers(set_, held, "it is new: it is held until what it made can be let go")


def _note_template(seen: Observation) -> Decision:
    """Write down which template an update leads to, before anything is made of it."""
    set_ = seen.set_
    target = revisions.generation_hash(set_.spec.template)
    status = msgspec.structs.replace(set_.status, current_generation_hash=target)
    reason = "its template is noted"
    if set_.status.current_generation_hash:
        progress = replica_updates.begun(set_, target, seen.now)
        status = msgspec.structs.replace(
            status, rolling_update_progress=progress, updated_replicas=0
        )
        reason = "its template changed: an update begins"
    return Decision(intent=reporting.document(status, set_status.COUNTERS), reasons=(reason,))


def running_revisions(seen: Observation) -> dict[int, str]:
    """Return which revision each set replica runs.

    Its base gang says so; where that was deleted by hand, what is left of the replica. A new one
    runs the target.
    """
    found = {
        gang.metadata.name: gang.metadata.labels.get(labels.REVISION, "") for gang in seen.gangs
    }
    set_ = seen.set_
    target = set_.status.current_generation_hash
    told = {
        index: found.get(names.base_podgang(set_.metadata.name, index), "")
        for index in range(set_.spec.replicas)
    }
    left = {} if all(told.values()) else _followed(seen)
    return {index: revision or left.get(str(index), target) for index, revision in told.items()}


def _followed(seen: Observation) -> dict[str, str]:
    """Return the revisions that PodCliques and groups say they follow, by set replica index."""
    found: dict[str, str] = {}
    kept = set(map(revisions.hash_of, seen.revisions))
    children: list[PodClique | PodCliqueScalingGroup] = [*seen.cliques, *seen.groups]
    for child in children:
        revision = child.status.current_pod_clique_set_generation_hash
        if child.metadata.deletion_timestamp is None and revision in kept:
            found[child.metadata.labels.get(labels.SET_REPLICA_INDEX, "")] = revision
    return found


def template_for(
    set_: PodCliqueSet, kept: Sequence[ControllerRevision], revision: str
) -> PodCliqueSetTemplateSpec:
    """Return the template that a set replica of a revision is made from."""
    if revision and revision != set_.status.current_generation_hash:
        for candidate in kept:
            if revisions.hash_of(candidate) == revision and candidate.data is not None:
                return revisions.with_revision(set_.spec.template, candidate.data)
    return set_.spec.template


def with_template(set_: PodCliqueSet, template: PodCliqueSetTemplateSpec) -> PodCliqueSet:
    """Return a set as one of its replicas sees it: with the template that runs there."""
    if template is set_.spec.template:
        return set_
    return msgspec.structs.replace(set_, spec=msgspec.structs.replace(set_.spec, template=template))


class _Plan:
    """Collects what has to be made and taken away, in the order it has to happen in."""

    def __init__(self, seen: Observation) -> None:
        self.seen = seen
        self.set_ = seen.set_
        self._creates: dict[GroupKind, list[Callable[[], Create]]] = {kind: [] for kind in _MADE}
        self._names: dict[GroupKind, list[Ref]] = {kind: [] for kind in _MADE}
        self._told: list[Action] = []
        self._changes: list[Action] = []
        self.sharing = sharing.NOTHING
        self.reasons: list[str] = []
        self.running = running_revisions(seen)
        self._held = {(kind, metadata.name) for kind, metadata in seen.holders}
        self._there: dict[GroupKind, dict[str, Record]] = {
            groupkinds.SERVICE: {item.metadata.name: item for item in seen.services},
            groupkinds.AUTOSCALER: {item.metadata.name: item for item in seen.autoscalers},
            groupkinds.SCALING_GROUP: {item.metadata.name: item for item in seen.groups},
            groupkinds.CLIQUE: {item.metadata.name: item for item in seen.cliques},
            groupkinds.GANG: {item.metadata.name: item for item in seen.gangs},
            **{ref.kind: {} for ref in seen.present},
        }
        for ref in seen.present:
            self._there[ref.kind][ref.name] = ref
        self._group_replicas = {item.metadata.name: item.spec.replicas for item in seen.groups}
        target = self.set_.status.current_generation_hash
        self._known = {target, *map(revisions.hash_of, seen.revisions)}
        self._lost: set[str] = set()
        self._wanted: defaultdict[GroupKind, set[str]] = defaultdict(set)
        self._sets: dict[str, tuple[PodCliqueSet, Layout]] = {}
        self._stamps: dict[tuple[str, str], str] = {}
        self._keys = gang_documents.keys_by_domain(seen.binding, seen.settings)
        for _, metadata in _strangers(seen):
            self._told.append(conflict(ref_of(self.set_), self.set_.metadata.uid, metadata))
            self.reasons.append(f'the name "{metadata.name}" is held by another')

    @property
    def errors(self) -> tuple[LastError, ...]:
        """What stands in the way, and who has to act."""
        set_name = self.set_.metadata.name
        lost = (
            LastError(
                code=REVISION_NOT_FOUND,
                description=(
                    f"ControllerRevision {revisions.name(set_name, revision)} is not there, which "
                    "replicas of this set run: PodCliques they lose are not rebuilt until it is "
                    "restored or the replicas are updated"
                ),
                observed_at=self.seen.now,
            )
            for revision in sorted(self._lost)
        )
        return (*self.sharing.errors, *lost)

    @property
    def made(self) -> list[Ref]:
        """What is to be made, in order."""
        return [ref for kind in _MADE for ref in self._names[kind]]

    @property
    def actions(self) -> list[Action]:
        """The first of what is to be done, in order: what is alike stands together.

        Documents are made here, for no more than are asked for at a time.
        """
        first = [*self._told, *self.sharing.actions]
        creates = [create for kind in _MADE for create in self._creates[kind]]
        made = [create() for create in creates[: max(0, ACTIONS_MAX - len(first))]]
        return [*first, *made, *self._changes][:ACTIONS_MAX]

    def _want(self, kind: GroupKind, name: str) -> bool:
        """Note that an object is wanted; returns whether it has to be made."""
        self._wanted[kind].add(name)
        if kind in self._there and name in self._there[kind]:
            return False
        if kind in _SHARE and self.seen.shared.holders:
            return False
        return (kind, name) not in self._held

    def _create(
        self,
        kind: GroupKind,
        document: Callable[[], Document],
        name: str,
        needs: tuple[Ref, ...] = (),
    ) -> None:
        self._creates[kind].append(lambda: Create(document=document(), needs=needs))
        ref = Ref(kind=kind, namespace=self.set_.metadata.namespace, name=name)
        self._names[kind].append(ref)
        self.reasons.append(f"{kind.kind} {name} is missing")

    # What all replicas share

    def make_surroundings(self) -> None:
        set_ = self.set_
        self._make_revision()
        set_name = set_.metadata.name
        wanted = [
            (
                groupkinds.SERVICE_ACCOUNT,
                names.service_account(set_name),
                supporting.service_account,
            ),
            (groupkinds.ROLE, names.role(set_name), supporting.role),
            (groupkinds.ROLE_BINDING, names.role(set_name), supporting.role_binding),
        ]
        if startup.has_order(set_.spec.template) and self.seen.settings.wait_image:
            wanted.append(
                (groupkinds.SECRET, names.token_secret(set_name), supporting.token_secret)
            )
        for kind, name, document in wanted:
            if self._want(kind, name):
                self._create(kind, partial(document, set_), name)

    def share(self) -> None:
        """Make the claims that pods of the whole set share."""
        self.sharing = sharing.decide(
            tuple(claims.of_set(self.set_)),
            self.seen.shared,
            self.set_.spec.template,
            groupkinds.SET,
            self.set_.metadata,
            self.seen.now,
        )
        self.reasons.extend(self.sharing.reasons)

    def _make_revision(self) -> None:
        target = self.set_.status.current_generation_hash
        kept = {revisions.hash_of(item): item for item in self.seen.revisions}
        if target not in kept:
            number = max((item.revision for item in self.seen.revisions), default=0) + 1
            document = partial(revisions.document, self.set_, target, number)
            self._create(
                groupkinds.REVISION, document, revisions.name(self.set_.metadata.name, target)
            )
        self._count_anew(target, kept)
        needed = {target, *self.running.values()}
        unused = sorted(
            (item for found, item in kept.items() if found not in needed),
            key=lambda item: item.revision,
            reverse=True,
        )
        for item in unused[max(0, revisions.KEPT - len(needed)) :]:
            self._delete(
                groupkinds.REVISION, item.metadata, "no replica runs it, and newer ones are kept"
            )

    def _count_anew(self, target: str, kept: Mapping[str, ControllerRevision]) -> None:
        """Number the target above all others where the set went back to it: the newest counts.

        Why it was changed is told as the set tells it, as people annotate that afterwards too.
        """
        if target not in kept:
            return
        metadata = kept[target].metadata
        merge: Document = {}
        newest = max((item.revision for item in kept.values()), default=0)
        if kept[target].revision < newest:
            merge["revision"] = newest + 1
        why = revisions.cause(self.set_.metadata)
        if why and why != revisions.cause(metadata):
            merge["metadata"] = {"annotations": {labels.CHANGE_CAUSE: why}}
        if merge:
            self._patch(groupkinds.REVISION, metadata, merge, "it is what the set says now")

    # One replica

    def _seen_by(self, index: int) -> tuple[PodCliqueSet, Layout]:
        """Return the set as a replica sees it, and what a replica of it consists of."""
        revision = self.running[index]
        if revision not in self._sets:
            template = template_for(self.set_, self.seen.revisions, revision)
            set_ = with_template(self.set_, template)
            self._sets[revision] = set_, places.layout(set_)
        return self._sets[revision]

    def make_replica(self, index: int) -> None:
        set_, layout = self._seen_by(index)
        if self.running[index] not in self._known:
            self._lost.add(self.running[index])
        self._make_base_gang(set_, layout, index)
        self._make_service(index)
        for group in layout.group_places(index):
            self._make_group(set_, group)
        for place in layout.standalone_places(index):
            self._make_clique(set_, place)

    def _base_gang(self, index: int) -> Ref:
        """Return the gang that tells a replica's revision, and so stands before its children."""
        metadata = self.set_.metadata
        name = names.base_podgang(metadata.name, index)
        return Ref(kind=groupkinds.GANG, namespace=metadata.namespace, name=name)

    def _make_base_gang(self, set_: PodCliqueSet, layout: Layout, index: int) -> None:
        name = names.base_podgang(set_.metadata.name, index)
        self._follow_target(index, name)
        if self._want(groupkinds.GANG, name):
            members = partial(layout.base_places, index, self._group_replicas)
            document = partial(self._gang, set_, name, members, self.running[index])
            self._create(groupkinds.GANG, document, name)

    def _follow_target(self, index: int, name: str) -> None:
        """Have a replica run the target, where its turn has come: its gang tells all others."""
        target = self.set_.status.current_generation_hash
        gang = self._there[groupkinds.GANG].get(name)
        if not isinstance(gang, PodGang) or self.running[index] == target:
            return
        on_delete = replica_updates.is_on_delete(self.set_)
        if on_delete or replica_updates.current(self.set_) == index:
            merge: Document = {"metadata": {"labels": {labels.REVISION: target}}}
            self._patch(groupkinds.GANG, gang.metadata, merge, f"replica {index} is to be updated")
            self._told.append(progressing.begins(ref_of(self.set_), self.set_, index))

    def _gang(
        self,
        set_: PodCliqueSet,
        name: str,
        places_of: Callable[[], Iterable[CliquePlace]],
        revision: str,
    ) -> Document:
        template, members = set_.spec.template, tuple(places_of())
        spec = gang_documents.spec(
            template,
            members,
            {place.name: _planned(template, place) for place in members},
            set_.metadata.namespace,
            self._keys,
        )
        carried = gang_documents.gang_labels(set_, template, revision, self.seen.settings)
        annotations = gang_documents.gang_annotations(set_, spec)
        return gang_documents.podgang(set_, name, spec, carried, annotations)

    def _make_service(self, index: int) -> None:
        set_ = self.set_
        name = names.headless_service(set_.metadata.name, index)
        if self._want(groupkinds.SERVICE, name):
            document = partial(supporting.headless_service, set_, index)
            self._create(groupkinds.SERVICE, document, name)
            return
        there = self._there[groupkinds.SERVICE].get(name)
        wanted = set_.spec.template.headless_service_config.publish_not_ready_addresses
        if isinstance(there, Service) and there.spec.publish_not_ready_addresses != wanted:
            merge: Document = {"spec": {"publishNotReadyAddresses": wanted}}
            self._patch(groupkinds.SERVICE, there.metadata, merge, "its template says otherwise")

    def _make_group(self, set_: PodCliqueSet, place: GroupPlace) -> None:
        config = place.config
        replicas = config.replicas
        if self._want(groupkinds.SCALING_GROUP, place.name):
            document = partial(clique_documents.scaling_group, set_, place)
            gang = self._base_gang(place.set_replica_index)
            self._create(groupkinds.SCALING_GROUP, document, place.name, (gang,))
        else:
            there = self._there[groupkinds.SCALING_GROUP].get(place.name)
            if isinstance(there, PodCliqueScalingGroup):
                replicas = there.spec.replicas
        for copy in range(config.min_available, replicas):
            name = place.gang(copy)
            if self._want(groupkinds.GANG, name):
                members = partial(places.grouped_places, place, [copy])
                self._create(groupkinds.GANG, partial(self._gang, set_, name, members, ""), name)
        if config.scale_config is not None:
            wanted = supporting.autoscaler(
                set_, groupkinds.SCALING_GROUP.kind, place.name, config.scale_config
            )
            self._make_autoscaler(place.name, wanted)

    def _make_clique(self, set_: PodCliqueSet, place: CliquePlace) -> None:
        is_missing = self._want(groupkinds.CLIQUE, place.name)
        if is_missing and self.running[place.set_replica_index] in self._known:
            document = partial(clique_documents.podclique, set_, set_.spec.template, place)
            gang = self._base_gang(place.set_replica_index)
            self._create(groupkinds.CLIQUE, document, place.name, (gang,))
        clique = places.clique_of(set_.spec.template, place.clique)
        assert clique is not None, "a place is of a clique of its template"
        self._follow_template(set_, place)
        config = clique.spec.auto_scaling_config
        there = self._there[groupkinds.CLIQUE].get(place.name)
        if isinstance(there, PodClique) and there.spec.auto_scaling_config != config:
            encoded: Json = None if config is None else records.encode(config)
            merge: Document = {"spec": {"autoScalingConfig": encoded}}
            self._patch(groupkinds.CLIQUE, there.metadata, merge, "its template says otherwise")
        if config is not None:
            wanted = supporting.autoscaler(set_, groupkinds.CLIQUE.kind, place.name, config)
            self._make_autoscaler(place.name, wanted)

    def _follow_template(self, set_: PodCliqueSet, place: CliquePlace) -> None:
        """Have a PodClique say what its replica runs; its pods follow one after the other."""
        there = self._there[groupkinds.CLIQUE].get(place.name)
        if not isinstance(there, PodClique) or copies.is_going(there):
            return
        revision = self.running[place.set_replica_index]
        if revision not in self._known:
            return
        if there.metadata.labels.get(labels.POD_TEMPLATE_HASH) == self._stamp(set_, place):
            return
        wanted = clique_documents.podclique(set_, set_.spec.template, place)
        change = clique_documents.template_change(there, wanted)
        if change:
            why = "its replica runs another template"
            self._patch(groupkinds.CLIQUE, there.metadata, change, why)

    def _stamp(self, set_: PodCliqueSet, place: CliquePlace) -> str:
        """Return the hash of what a clique of a replica is made from, worked out once a look."""
        key = self.running[place.set_replica_index], place.clique
        if key not in self._stamps:
            template = set_.spec.template
            clique = places.clique_of(template, place.clique)
            assert clique is not None, "a place is of a clique of its template"
            self._stamps[key] = revisions.pod_template_hash(template, clique)
        return self._stamps[key]

    def _make_autoscaler(self, name: str, document: Document) -> None:
        if self._want(groupkinds.AUTOSCALER, name):
            self._create(groupkinds.AUTOSCALER, lambda: document, name)
            return
        there = self._there[groupkinds.AUTOSCALER].get(name)
        if isinstance(there, HorizontalPodAutoscaler):
            change = _autoscaler_change(there, document)
            if change:
                self._patch(
                    groupkinds.AUTOSCALER, there.metadata, change, "its template says otherwise"
                )

    def tear_down(self, fate: Fate) -> None:
        """Delete what lost members for too long; the next looks build it anew."""
        told = termination.actions_of(ref_of(self.set_), self.set_.metadata, fate)
        self._changes.extend(told)
        self.reasons.extend(fate.reasons)

    # What is not wanted any more

    def remove_excess(self) -> None:
        """Take away what belongs to no replica: highest set replicas first."""
        for kind in _TAKEN_AWAY:
            wanted = self._wanted[kind]
            there = self._there.get(kind, {})
            for name in sorted(there.keys() - wanted, reverse=True):
                metadata = getattr(there[name], "metadata", None)
                assert isinstance(metadata, ObjectMeta)
                self._delete(kind, metadata, "no replica of the set needs it")

    def _delete(self, kind: GroupKind, metadata: ObjectMeta, why: str) -> None:
        if metadata.deletion_timestamp is not None:
            return
        ref = Ref(kind=kind, namespace=metadata.namespace, name=metadata.name)
        self._changes.append(Delete(target=ref, only_if=Precondition(uid=metadata.uid)))
        self.reasons.append(f"{ref} goes: {why}")

    def _patch(self, kind: GroupKind, metadata: ObjectMeta, merge: Document, why: str) -> None:
        ref = Ref(kind=kind, namespace=metadata.namespace, name=metadata.name)
        only_if = Precondition(uid=metadata.uid)
        self._changes.append(Patch(target=ref, merge=merge, only_if=only_if))
        self.reasons.append(f"{ref} is changed: {why}")


_MADE = (
    groupkinds.REVISION,
    groupkinds.SERVICE_ACCOUNT,
    groupkinds.ROLE,
    groupkinds.ROLE_BINDING,
    groupkinds.SECRET,
    groupkinds.GANG,
    groupkinds.SERVICE,
    groupkinds.SCALING_GROUP,
    groupkinds.CLIQUE,
    groupkinds.AUTOSCALER,
)
"""In which order things are made: a gang tells its replica's revision before any child is made."""

_SHARE = (groupkinds.SCALING_GROUP, groupkinds.CLIQUE)
"""What makes pods that share the claims of the set."""

_TAKEN_AWAY = (
    groupkinds.CLIQUE,
    groupkinds.SCALING_GROUP,
    groupkinds.AUTOSCALER,
    groupkinds.GANG,
    groupkinds.SERVICE,
)
"""In which order what belongs to no replica goes."""


def _planned(template: PodCliqueSetTemplateSpec, place: CliquePlace) -> list[str]:
    """Return the names of the pods a new PodClique is going to have."""
    clique = places.clique_of(template, place.clique)
    assert clique is not None, "a place is of a clique of its template"
    return [names.pod(place.name, index) for index in range(clique.spec.replicas)]


def _autoscaler_change(there: HorizontalPodAutoscaler, document: Document) -> Document:
    """Return the merge patch that brings an autoscaler's bounds and metrics in line."""
    wanted = document["spec"]
    assert isinstance(wanted, dict), "an autoscaler has a spec"
    held: Document = {
        "maxReplicas": there.spec.max_replicas,
        "minReplicas": there.spec.min_replicas,
        "metrics": [*there.spec.metrics],
    }
    kept: Document = {key: wanted.get(key, held[key]) for key in held}
    changed = merge_patch.diff(held, kept)
    return {"spec": changed} if changed else {}


def _status(
    seen: Observation, plan: _Plan, progress: PodCliqueSetUpdateProgress | None
) -> PodCliqueSetStatus:
    status = set_status.status_of(
        seen.set_,
        set_status.Parts(
            groups=seen.groups,
            cliques=seen.cliques,
            gangs=seen.gangs,
            held=tuple(metadata.name for _, metadata in seen.holders),
            running=plan.running,
            errors=plan.errors,
            binding=seen.binding,
        ),
        seen.settings,
        seen.now,
    )
    if progress is None:
        return status
    scene = _scene(seen, plan.running)
    said = progressing.condition(scene, progress, seen.stuck, seen.now)
    return msgspec.structs.replace(
        status,
        rolling_update_progress=progress,
        updated_replicas=replica_updates.updated_count(scene, progress),
        conditions=progressing.with_condition(status.conditions, said, seen.now),
    )


def _strangers(seen: Observation) -> list[tuple[GroupKind, ObjectMeta]]:
    """Return what holds names the set needs, but for what a set of its name left behind."""
    return [
        (kind, metadata)
        for kind, metadata in seen.holders
        if not owning.is_left_over(metadata, groupkinds.SET, seen.set_.metadata)
    ]


def expected_gangs(
    set_: PodCliqueSet, index: int, group_replicas: Mapping[str, int]
) -> Iterator[tuple[str, tuple[CliquePlace, ...]]]:
    """Yield the gangs of a set replica with their members, the base gang first.

    `group_replicas` are the counts of the groups that are there; the others have the template's.
    """
    layout = places.layout(set_)
    base = names.base_podgang(set_.metadata.name, index)
    yield base, tuple(layout.base_places(index, group_replicas))
    for group in layout.group_places(index):
        replicas = group_replicas.get(group.name, group.config.replicas)
        for copy in range(group.config.min_available, replicas):
            yield group.gang(copy), tuple(places.grouped_places(group, [copy]))
