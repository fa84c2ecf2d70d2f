"""What must hold of a template, whoever holds it: a PodCliqueSet, a deployment, a route.

Every rule sits on the field a person would edit. Rules about shape (types, unknown and missing
fields, enums) come from the schema; these are the ones that compare fields with each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from spinney.api import autoscaling, names, podclique, resourcesharing, topology
from spinney.api.surroundings import Surroundings
from spinney.api.templates import EXPLICIT, TRAINING
from spinney.meta import errors, metadata
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Json, same_content
from spinney.meta.durations import Duration
from spinney.meta.errors import FieldError, cut, listed, shown


def create_rules(template: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    """Yield what is refused in new templates only, on top of `rules`."""
    yield from topology.new_pack_domains(template)
    yield from topology.create_rules(template, surroundings)
    for clique in template["cliques"]:
        pod_spec = clique.at("spec", "podSpec")
        for field, instead in (
            ("topologySpreadConstraints", "use topologyConstraint of the clique"),
            ("nodeName", "the scheduler chooses nodes; use nodeSelector or affinity"),
        ):
            if pod_spec[field].value not in (None, ""):
                yield pod_spec[field].invalid(f"must not be set: {instead}")


def rules(
    template: Cursor,
    owner_name: Cursor,
    workload_type: str,
    surroundings: Surroundings,
    *,
    name_length: int = 0,
) -> Iterator[FieldError]:
    """Yield what is wrong with a template, new or changed.

    `owner_name` is where the name stands that pods' names begin with; `name_length` its length,
    where more is added to it.
    """
    length = name_length or len((owner_name.string() or "").encode("utf-8", "replace"))
    yield from _clique_list_rules(template, owner_name, length, workload_type)
    yield from _group_rules(template, owner_name, length, workload_type)
    yield from _startup_rules(template)
    yield from _delay_rules(template, workload_type)
    yield from _scheduler_rules(template, surroundings)
    yield from resourcesharing.rules(template)
    for constraint in topology.levels(template):
        yield from topology.shape_rules(constraint.cursor)
    yield from _collision_rules(template)


def _clique_list_rules(
    template: Cursor, owner_name: Cursor, owner_length: int, workload_type: str
) -> Iterator[FieldError]:
    cliques = template["cliques"]
    if cliques.value == []:
        yield cliques.required("must have at least one clique")
    grouped = {
        name
        for group in template["podCliqueScalingGroups"]
        for name in group["cliqueNames"].strings()
    }
    roles: set[str] = set()
    for clique in cliques:
        name, role = clique["name"], clique.at("spec", "roleName")
        yield from _name_rules(name)
        text = name.string() or ""
        if text and text not in grouped:
            yield from _length_rules(owner_length, (text,), owner_name, (name,))
        if role.string() is not None and role.string() in roles:
            yield role.duplicate("roles are unique within a set")
        elif role.string() == "":
            yield role.required("name the role of these pods")
        roles.add(role.string() or "")
        yield from metadata.label_faults(clique["labels"])
        yield from metadata.annotation_faults(clique["annotations"])
        yield from podclique.spec_rules(clique["spec"])
        if text in grouped:
            config = clique.at("spec", "autoScalingConfig")
            if config and workload_type != TRAINING:
                yield config.forbidden(
                    "a clique in a group is scaled with its group: use the group's scaleConfig"
                )
        else:
            yield from autoscaling.rules(clique["spec"], "autoScalingConfig", cover_replicas=True)
        yield from _pod_spec_rules(clique.at("spec", "podSpec"), workload_type)
        if workload_type == TRAINING:
            yield from _no_scaling(clique.at("spec", "autoScalingConfig"))


def _name_rules(name: Cursor) -> Iterator[FieldError]:
    text = name.string()
    if text is None:
        return
    if not text.strip():
        yield name.required("a name must be given")
    elif message := metadata.dns_subdomain_fault(text):
        yield name.invalid(message)


def _length_rules(
    owner_length: int, parts: tuple[str, ...], owner_name: Cursor, told_at: tuple[Cursor, ...]
) -> Iterator[FieldError]:
    total = owner_length + sum(len(part.encode("utf-8", "replace")) for part in parts)
    if total <= names.NAME_BUDGET:
        return
    message = (
        f"the names that make up a pod's name must have at most {names.NAME_BUDGET} characters "
        f"together, found {total}: {' + '.join((owner_name.path, *(at.path for at in told_at)))}"
    )
    for cursor in (owner_name, *told_at):
        yield cursor.invalid(message)


_ENVIRONMENT_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def _pod_spec_rules(pod_spec: Cursor, workload_type: str) -> Iterator[FieldError]:
    if pod_spec["containers"].value == []:
        yield pod_spec["containers"].required("must have at least one container")
    if workload_type == TRAINING and pod_spec["restartPolicy"].string() == "Always":
        yield pod_spec["restartPolicy"].invalid(
            'must be "Never" (or "OnFailure") for Training: a pod that ends has ended'
        )
    for field in ("containers", "initContainers"):
        for container in pod_spec[field]:
            for variable in container["env"]:
                name = variable["name"].string()
                if name is not None and not _ENVIRONMENT_NAME.fullmatch(name):
                    yield variable["name"].invalid(
                        "must consist of letters, digits, '_', '-' or '.', "
                        "and must not begin with a digit"
                    )


def _no_scaling(config: Cursor) -> Iterator[FieldError]:
    if config:
        yield config.forbidden("a Training workload has a fixed size: remove the autoscaling")


def _group_rules(
    template: Cursor, owner_name: Cursor, owner_length: int, workload_type: str
) -> Iterator[FieldError]:
    known = {clique["name"].string() for clique in template["cliques"]}
    group_names: set[str] = set()
    taken: dict[str, str] = {}
    for group in template["podCliqueScalingGroups"]:
        name = group["name"]
        yield from _name_rules(name)
        text = name.string() or ""
        if text and text in group_names:
            yield name.duplicate("groups of a set have different names")
        group_names.add(text)
        members = group["cliqueNames"]
        if members.value == []:
            yield members.required("must have at least one clique")
        for member in members:
            clique = member.string()
            if clique is None:
                continue
            if clique not in known:
                yield member.invalid("no clique of this name in the set")
            elif clique in taken:
                yield member.duplicate(f'already in group "{cut(taken[clique])}"')
            else:
                yield from _length_rules(owner_length, (text, clique), owner_name, (name, member))
            taken.setdefault(clique, text)
        yield from metadata.annotation_faults(group["annotations"])
        yield from _group_count_rules(group, workload_type)
        yield from autoscaling.rules(group, "scaleConfig", cover_replicas=False)
        if workload_type == TRAINING:
            yield from _no_scaling(group["scaleConfig"])


def _group_count_rules(group: Cursor, workload_type: str) -> Iterator[FieldError]:
    replicas, floor = group["replicas"], group["minAvailable"]
    count, least = replicas.integer(), floor.integer()
    if count is not None and count < 0:
        yield replicas.invalid("must be greater than or equal to 0")
    elif count == 0 and workload_type == TRAINING:
        yield replicas.invalid("must be greater than 0 for Training")
    if least is not None and least <= 0:
        yield floor.invalid("must be greater than 0")
    if count is not None and least is not None and least > count > 0:
        yield floor.invalid(f"must be less than or equal to replicas ({shown(count)})")


def _startup_rules(template: Cursor) -> Iterator[FieldError]:
    if template["cliqueStartupType"].string() != EXPLICIT:
        return
    known = {clique["name"].string() or "" for clique in template["cliques"]}
    waits: dict[str, tuple[str, ...]] = {}
    for clique in template["cliques"]:
        name = clique["name"].string() or ""
        seen: set[str] = set()
        for item in clique.at("spec", "startsAfter"):
            other = item.string()
            if other is None:
                continue
            if not other.strip():
                yield item.required("name the clique to wait for")
            elif other == name:
                yield item.invalid("a clique cannot wait for itself")
            elif other in seen:
                yield item.duplicate()
            elif other not in known:
                yield item.invalid("no clique of this name in the set")
            seen.add(other)
        waits.setdefault(name, tuple(sorted((seen & known) - {name})))
    found: list[Json] = [" -> ".join((*circle, circle[0])) for circle in circles(waits)]
    if found:
        yield FieldError(
            path=template["cliques"].path,
            reason=errors.INVALID,
            message="startsAfter must not go in circles",
            found=found,
        )


CIRCLES_TOLD_MAX = 10
"""How many circles are told; whoever breaks that many is told of more."""


def circles(waits: dict[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return circles of names that wait for each other, some of many; none where there is none."""
    found: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(waits):
        path: dict[str, int] = {}
        ahead = [iter(() if start in done else (start,))]
        while ahead and len(found) < CIRCLES_TOLD_MAX:
            name = next(ahead[-1], None)
            if name is None:
                ahead.pop()
                if path:
                    done.add(path.popitem()[0])
            elif name in path:
                found.append(tuple(path)[path[name] :])
            elif name not in done:
                path[name] = len(path)
                ahead.append(iter(waits.get(name, ())))
    return found


def _delay_rules(template: Cursor, workload_type: str) -> Iterator[FieldError]:
    whole = template["terminationDelay"]
    yield from _one_delay(whole, workload_type)
    for group in template["podCliqueScalingGroups"]:
        own = group["terminationDelay"]
        if own and not whole:
            yield own.forbidden(
                f"only where {whole.path} is given: without it gang termination is off"
            )
        yield from _one_delay(own, workload_type)


def _one_delay(delay: Cursor, workload_type: str) -> Iterator[FieldError]:
    span = delay.duration()
    if span is None:
        return
    if workload_type == TRAINING:
        if span < Duration():
            yield delay.invalid("must be greater than or equal to 0s")
    elif span <= Duration():
        yield delay.invalid("must be greater than 0s; leave it out to turn gang termination off")


def _scheduler_rules(template: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    chosen: list[tuple[Cursor, str]] = []
    for clique in template["cliques"]:
        cursor = clique.at("spec", "podSpec", "schedulerName")
        if clique.at("spec", "podSpec").object() is not None:
            chosen.append((cursor, cursor.string() or surroundings.default_scheduler))
    if not chosen:
        return
    first = chosen[0][1]
    for cursor, scheduler in chosen:
        if scheduler != first:
            yield cursor.invalid(
                f'all cliques of a set must have the same scheduler, the first has "{cut(first)}"'
            )
    if first not in surroundings.schedulers:
        yield chosen[0][0].not_supported(surroundings.schedulers)


def _collision_rules(template: Cursor) -> Iterator[FieldError]:
    parts = _parts(template)
    by_owner = {part.owner: cursor for part, cursor in parts}
    for one, other, name in names.collisions([part for part, _ in parts]):
        yield by_owner[other.owner].invalid(
            f'would share a {one.sort} name such as "<name>{name}" with {one.title}: '
            "rename one of them"
        )


def _parts(template: Cursor) -> list[tuple[names.Part, Cursor]]:
    """Return all names the objects of a template are made of, each with the field to change.

    What is too long for any name is left out: it is refused for that.
    """
    found: list[tuple[names.Part, Cursor]] = []

    def add(part: names.Part, cursor: Cursor) -> None:
        if sum(map(len, part.pieces)) <= metadata.SUBDOMAIN_LENGTH_MAX:
            found.append((part, cursor))

    group_of: dict[str, str] = {}
    for group in template["podCliqueScalingGroups"]:
        group_name = group["name"].string() or ""
        for member in group["cliqueNames"].strings():
            group_of.setdefault(member, group_name)
        if group["scaleConfig"]:
            add(names.autoscaler_part(group_name, "group", group["name"].path), group["name"])
        for entry, claim, per_replica in _claims(group["resourceSharing"]):
            add(
                names.group_claim_part(
                    group_name, claim, per_replica=per_replica, owner=entry.path
                ),
                entry,
            )
    for clique in template["cliques"]:
        name = clique["name"].string() or ""
        part = names.clique_part(name, group_of.get(name, ""), clique["name"].path)
        add(part, clique["name"])
        if clique.at("spec", "autoScalingConfig"):
            add(names.autoscaler_part(name, "clique", clique["name"].path), clique["name"])
        for entry, claim, per_replica in _claims(clique["resourceSharing"]):
            add(names.claim_part(part, claim, per_replica=per_replica, owner=entry.path), entry)
    for entry, claim, per_replica in _claims(template["resourceSharing"]):
        add(names.claim_part(None, claim, per_replica=per_replica, owner=entry.path), entry)
    return found


def _claims(entries: Cursor) -> Iterator[tuple[Cursor, str, bool]]:
    for entry in entries:
        name, scope = entry["name"].string(), entry["scope"].string()
        if name and scope:
            yield entry["name"], name, scope == resourcesharing.PER_REPLICA


def update_rules(old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    """Yield what may not change in a template once it is stored, as far as it did."""
    yield from _clique_updates(old, new)
    yield from _group_updates(old, new)
    for field in ("cliqueStartupType", "resourceClaimTemplates", "resourceSharing"):
        yield from _immutable(old, new, field)
    yield from topology.update_rules(old, new, surroundings)


def _quoted(names_gone: list[str | None]) -> str:
    return listed([f'"{name}"' for name in names_gone])


def _immutable(old: Cursor, new: Cursor, field: str) -> Iterator[FieldError]:
    if not same_content(old[field].value, new[field].value):
        yield new[field].invalid("field is immutable")


def _clique_updates(old: Cursor, new: Cursor) -> Iterator[FieldError]:
    before = {clique["name"].string(): clique for clique in old["cliques"]}
    after = list(new["cliques"])
    kept = {clique["name"].string() for clique in after}
    gone = [name for name in before if name not in kept]
    if gone and new["cliques"].value is not None:
        yield new["cliques"].forbidden(f"cliques cannot be taken away, missing: {_quoted(gone)}")
    ordered = new["cliqueStartupType"].string() not in (None, "CliqueStartupTypeAnyOrder")
    positions = list(before)
    for index, clique in enumerate(after):
        name = clique["name"].string()
        was = before.get(name)
        if was is None:
            if name is not None:
                yield clique["name"].forbidden("cliques cannot be added")
            continue
        if ordered and not gone and len(after) == len(before) and positions[index] != name:
            yield clique.invalid(
                "the order of cliques is fixed by the start-up type: "
                f'here stood "{cut(positions[index] or "")}"'
            )
        for field in ("roleName", "minAvailable", "startsAfter"):
            yield from _immutable(was["spec"], clique["spec"], field)
        yield from _immutable(
            was.at("spec", "podSpec"), clique.at("spec", "podSpec"), "schedulerName"
        )
        yield from _immutable(was, clique, "resourceSharing")


def _group_updates(old: Cursor, new: Cursor) -> Iterator[FieldError]:
    field = "podCliqueScalingGroups"
    before = {group["name"].string(): group for group in old[field]}
    after = list(new[field])
    kept = {group["name"].string() for group in after}
    gone = [name for name in before if name not in kept]
    if gone:
        yield new[field].forbidden(f"groups cannot be taken away, missing: {_quoted(gone)}")
    for group in after:
        was = before.get(group["name"].string())
        if was is None:
            if group["name"].string() is not None:
                yield group["name"].forbidden("groups cannot be added")
            continue
        for name in ("cliqueNames", "minAvailable", "resourceSharing"):
            yield from _immutable(was, group, name)


def advice(
    template: Cursor, old: Cursor | None, workload_type: str, surroundings: Surroundings
) -> Iterator[str]:
    """Yield warnings about a template."""
    yield from topology.advice(template, old, surroundings)
    for clique in template["cliques"]:
        policy = clique.at("spec", "podSpec", "restartPolicy")
        if workload_type == TRAINING and policy.string() == "OnFailure":
            yield (
                f"{policy.path}: with OnFailure containers restart in place, which neither "
                "maxRestarts nor failurePolicy sees: Never is meant for Training"
            )
        elif workload_type != TRAINING and policy.string() in ("Never", "OnFailure"):
            yield (
                f'{policy.path}: with "{policy.string()}" a pod that ends stays ended until it is '
                "replaced: Always is meant for Inference"
            )
    if old is not None:
        yield from _scaling_advice(template, old)


def _scaling_advice(new: Cursor, old: Cursor) -> Iterator[str]:
    """Yield where written replicas changed that do not reach what already runs (rule 1.10)."""
    for field, resource in (("cliques", "pclq"), ("podCliqueScalingGroups", "pcsg")):
        before = {item["name"].string(): item for item in old[field]}
        for item in new[field]:
            was = before.get(item["name"].string())
            if was is None:
                continue
            inner = "spec" if field == "cliques" else ""
            count = (item[inner] if inner else item)["replicas"]
            earlier = (was[inner] if inner else was)["replicas"]
            if count.integer() is not None and count.integer() != earlier.integer():
                yield (
                    f"{count.path}: reaches only what is created from now on; scale what runs "
                    f"with: kubectl scale {resource} <set>-<replica>-{item['name'].string()} "
                    f"--replicas={shown(count.value)}"
                )
