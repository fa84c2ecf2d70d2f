"""Plans: what a changed set would do, step by step, found by rehearsing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from spinney.api import groupkinds, labels
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.app.rehearsing.availability import Level, Watch
from spinney.app.rehearsing.objects import ref_of
from spinney.app.rehearsing.rehearsal import Rehearsal
from spinney.decisions import places, revisions
from spinney.decisions.actions import Action, Decision, Delete, Emit
from spinney.decisions.updates import history, progressing, replicas
from spinney.decisions.updates.history import Difference
from spinney.meta import conditions, records
from spinney.meta.conditions import FALSE
from spinney.meta.documents import Document, Json, list_at, object_at, same, with_value, without
from spinney.meta.records import Record
from spinney.meta.references import Ref

MARGIN = timedelta(minutes=1)


class Roll(Record):
    """A clique of the template: whether its pods are replaced, and why."""

    clique: str
    why: str
    group: str = ""
    is_replaced: bool = False
    changes: tuple[Difference, ...] = ()


class Step(Record):
    """One thing that is taken away, so that it is made anew or not."""

    sort: str
    """`replica` for a replica whose turn comes, `pod`, or `copy` for a PodClique that goes whole
    with its copy of a group."""

    replica: int
    subject: str
    component: str = ""
    """The clique or group it belongs to, by its full name."""

    why: str = ""


class Plan(Record):
    """What a changed set would do."""

    name: str
    namespace: str
    is_new: bool = False
    rolls: tuple[Roll, ...] = ()
    other_changes: tuple[Difference, ...] = ()
    """What changes and replaces no pod."""

    steps: tuple[Step, ...] = ()
    levels: tuple[Level, ...] = ()
    pods_made: int = 0
    pods_away_most: int = 0
    resources_away_most: Mapping[str, int] = {}
    blocked: tuple[str, ...] = ()
    """What would keep it from being complete."""

    are_nodes_known: bool = True

    @property
    def is_complete(self) -> bool:
        """Whether it would come to its end."""
        return not self.blocked


def plan(documents: Iterable[Document], changed: Document, now: datetime) -> Plan:
    """Return what would happen to a set if it were changed so.

    `documents` are the objects of its world as they are: all that belongs to the set, the nodes,
    and the pods on them.
    """
    there = list(documents)
    ref = ref_of(changed)
    old = next((each for each in there if ref_of(each) == ref), None)
    steps: list[Step] = []
    rehearsal = Rehearsal(
        there, now, before=lambda _key, action, decision: _note(rehearsal, steps, action, decision)
    )
    after = records.decode(PodCliqueSet, changed)
    made = _count_pods(rehearsal, ref)
    watch = Watch(rehearsal.objects, after)
    rehearsal.change(stored(old, changed))
    deadline = progressing.deadline(after) + MARGIN
    is_over = rehearsal.run(now + deadline)
    return Plan(
        name=ref.name,
        namespace=ref.namespace,
        is_new=old is None,
        rolls=_rolls(old, after),
        other_changes=_other_changes(old, changed),
        steps=tuple(steps),
        levels=tuple(watch.levels()),
        pods_made=max(_count_pods(rehearsal, ref) - made, 0),
        pods_away_most=watch.pods_away_most,
        resources_away_most=dict(sorted(watch.resources_away_most.items())),
        blocked=tuple(dict.fromkeys(_blocked(rehearsal, ref, is_over=is_over))),
        are_nodes_known=rehearsal.nodes.are_known,
    )


def stored(old: Document | None, changed: Document) -> Document:
    """Return a changed set as it would be stored."""
    if old is None:
        made = with_value(changed, ["metadata", "generation"], 1)
        return with_value(made, ["metadata", "uid"], "rehearsed-set")
    metadata = object_at(old, ["metadata"])
    generation = metadata.get("generation")
    assert isinstance(generation, int), "a stored object has a generation"
    is_same = same(old.get("spec"), changed.get("spec"))
    told = object_at(changed, ["metadata"])
    kept: Document = {
        **metadata,
        **{key: told[key] for key in ("labels", "annotations") if key in told},
        "generation": generation if is_same else generation + 1,
    }
    stored: Document = {**changed, "metadata": kept}
    return {**stored, "status": old["status"]} if "status" in old else without(stored, ["status"])


def _count_pods(rehearsal: Rehearsal, ref: Ref) -> int:
    by = (f"label:{labels.PART_OF}", ref.name)
    return len(rehearsal.objects.list(Pod, namespace=ref.namespace, by=by))


def _note(rehearsal: Rehearsal, steps: list[Step], action: Action, decision: Decision) -> None:
    """Write down what is taken away, and whose turn comes."""
    if isinstance(action, Emit) and action.reason == replicas.STARTED:
        index = action.key.rpartition("/")[2]
        steps.append(Step(sort="replica", replica=int(index), subject=index, why=action.note))
        return
    if not isinstance(action, Delete):
        return
    ref = action.target
    if ref.kind == groupkinds.POD:
        pod = rehearsal.objects.get(Pod, ref.namespace, ref.name)
        carried = {} if pod is None else pod.metadata.labels
        component = carried.get(labels.PODCLIQUE, "")
        is_going = pod is None or pod.metadata.deletion_timestamp is not None
    elif ref.kind == groupkinds.CLIQUE:
        clique = rehearsal.objects.get(PodClique, ref.namespace, ref.name)
        carried = {} if clique is None else clique.metadata.labels
        component = carried.get(labels.SCALING_GROUP, ref.name)
        is_going = clique is None or clique.metadata.deletion_timestamp is not None
    else:
        return
    if is_going:
        return
    steps.append(
        Step(
            sort="pod" if ref.kind == groupkinds.POD else "copy",
            replica=labels.number(carried, labels.SET_REPLICA_INDEX) or 0,
            subject=ref.name,
            component=component,
            why=next((reason for reason in decision.reasons if ref.name in reason), ""),
        )
    )


# What rolls


def _rolls(old: Document | None, after: PodCliqueSet) -> tuple[Roll, ...]:
    """Return which cliques' pods are replaced, and why."""
    template = after.spec.template
    before = None if old is None else records.decode(PodCliqueSet, old).spec.template
    if before is None:
        return tuple(
            Roll(clique=clique.name, why="is new with its set") for clique in template.cliques
        )
    was = {clique.name: revisions.pod_template_hash(before, clique) for clique in before.cliques}
    changed = {
        clique.name
        for clique in template.cliques
        if was.get(clique.name) != revisions.pod_template_hash(template, clique)
    }
    documents = [dict(_entries(revisions.data_of(each))) for each in (before, template)]
    found = []
    for clique in template.cliques:
        group = places.group_of(template, clique.name)
        beside = [] if group is None else [name for name in group.clique_names if name in changed]
        name = "" if group is None else group.name
        differences = history.differences(
            documents[0].get(clique.name, {}), documents[1].get(clique.name, {})
        )
        if clique.name in changed:
            why = "its pod template changes"
            if not differences:
                why = "the priority class of its set changes"
            roll = Roll(
                clique=clique.name, group=name, is_replaced=True, why=why, changes=differences
            )
        elif beside:
            why = f"copies of group {name} are replaced whole, and {', '.join(beside)} changes"
            roll = Roll(clique=clique.name, group=name, is_replaced=True, why=why)
        else:
            roll = Roll(clique=clique.name, group=name, why="its pod template stays as it is")
        found.append(roll)
    return tuple(found)


def _entries(data: Document) -> Iterable[tuple[str, Document]]:
    for entry in list_at(data, ["cliques"]):
        document = object_at(entry, [])
        yield str(document["name"]), document


def _other_changes(old: Document | None, changed: Document) -> tuple[Difference, ...]:
    """Return what else of a set's spec changes: nothing of it replaces a pod."""
    if old is None:
        return ()
    return history.differences(_unhashed(old), _unhashed(changed))


def _unhashed(document: Document) -> Document:
    """Return a set's spec without what its revisions hold."""
    spec = object_at(document, ["spec"])
    template = without(object_at(spec, ["template"]), ["priorityClassName"])
    cliques: list[Json] = []
    for entry in list_at(template, ["cliques"]):
        clique = {
            key: value
            for key, value in object_at(entry, []).items()
            if key not in ("labels", "annotations")
        }
        cliques.append(without(clique, ["spec", "podSpec"]))
    return {**spec, "template": {**template, "cliques": cliques}}


# What would block


def _blocked(rehearsal: Rehearsal, ref: Ref, *, is_over: bool) -> Iterable[str]:
    yield from rehearsal.refused
    if not is_over:
        yield f"the rehearsal was given up after {rehearsal.looks} looks: it never came to rest"
    for key, refusal in sorted(rehearsal.nodes.refusals.items()):
        gang = rehearsal.objects.get(PodGang, key.namespace, key.name)
        if gang is None or gang.metadata.namespace != ref.namespace:
            continue
        if gang.metadata.labels.get(labels.PART_OF) == ref.name:
            yield f"gang {key.name}: {refusal.summary}"
    set_ = rehearsal.objects.get(PodCliqueSet, ref.namespace, ref.name)
    if set_ is None:
        return
    for error in set_.status.last_errors:
        yield error.description
    said = conditions.find(set_.status.conditions, progressing.PROGRESSING)
    if said is not None and (said.status == FALSE or said.reason == progressing.PAUSED):
        yield said.message
