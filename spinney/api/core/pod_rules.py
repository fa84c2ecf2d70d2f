"""What must hold of a pod, and what of it may still change; worded as Kubernetes does."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api.core import container_rules, placement_rules
from spinney.api.core.container_rules import Around, invalid, listed, named, required
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, same_content
from spinney.meta.errors import FORBIDDEN, FieldError, shown
from spinney.meta.metadata import (
    dns_label_fault,
    dns_subdomain_fault,
    label_faults,
    qualified_name_fault,
)
from spinney.meta.schemas import INT32_MAX

_NOT_SOURCES = ("name",)

MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def rules(new: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with a pod, new or changed."""
    spec = new["spec"]
    said = spec.object()
    if said is None:
        return
    if said.get("containers") == []:
        yield required("spec.containers")
    yield from _container_rules(said, _around(said))
    for index, volume in enumerate(listed(said, "volumes")):
        if isinstance(volume, dict):
            yield from _volume_rules(volume, f"spec.volumes[{index}]")
    yield from _claim_rules(said)
    if resources := named(said, "resources"):
        yield from container_rules.resource_faults(resources, "spec.resources", frozenset())
    yield from _timing_rules(spec)
    yield from _text_rules(said)
    if "nodeSelector" in said:
        yield from label_faults(spec["nodeSelector"])
    for toleration in spec["tolerations"]:
        yield from placement_rules.toleration_faults(toleration)
    if "affinity" in said:
        yield from placement_rules.affinity_faults(spec["affinity"])
    for constraint in spec["topologySpreadConstraints"]:
        yield from placement_rules.spread_faults(constraint)
    yield from _gate_rules(spec)


def births(new: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with a new pod alone."""
    added = new["spec"]["ephemeralContainers"]
    if added.value not in (None, []):
        yield added.forbidden("cannot be set on create")


def _around(spec: Document) -> Around:
    return Around(
        volumes=frozenset(_names(spec, "volumes")),
        claims=frozenset(_names(spec, "resourceClaims")),
        host_network=spec.get("hostNetwork") is True,
    )


def _names(spec: Document, field: str) -> Iterator[str]:
    for item in listed(spec, field):
        if isinstance(item, dict) and isinstance(name := item.get("name"), str):
            yield name


def _container_rules(spec: Document, around: Around) -> Iterator[FieldError]:
    taken: set[str] = set()
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in enumerate(listed(spec, field)):
            if not isinstance(container, dict):
                continue
            path = f"spec.{field}[{index}]"
            name = container.get("name")
            if isinstance(name, str):
                if name in taken and field != "containers":
                    yield Cursor(name, f"{path}.name").duplicate()
                taken.add(name)
            yield from container_rules.faults(container, path, around)
            if field == "initContainers":
                yield from container_rules.init_faults(container, path)


def _volume_rules(volume: Document, path: str) -> Iterator[FieldError]:
    name = volume.get("name")
    if not isinstance(name, str) or dns_label_fault(name):
        yield from container_rules.label_faults(name, f"{path}.name")
    sources = [field for field in volume if field not in _NOT_SOURCES]
    for source in sources[1:]:
        yield FieldError(
            path=f"{path}.{source}",
            reason=FORBIDDEN,
            message="may not specify more than 1 volume type",
        )
    for source, field in (("persistentVolumeClaim", "claimName"), ("hostPath", "path")):
        if named(volume, source).get(field) == "":
            yield required(f"{path}.{source}.{field}")
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        mode = named(volume, source).get("defaultMode")
        if isinstance(mode, int) and not isinstance(mode, bool) and not 0 <= mode <= 0o777:
            yield invalid(
                f"{path}.{source}.defaultMode",
                mode,
                "must be a number between 0 and 0777 (octal), both inclusive",
            )


def _claim_rules(spec: Document) -> Iterator[FieldError]:
    for index, claim in enumerate(listed(spec, "resourceClaims")):
        if not isinstance(claim, dict):
            continue
        path = f"spec.resourceClaims[{index}]"
        yield from container_rules.label_faults(claim.get("name"), f"{path}.name")
        given = [f for f in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(f)]
        if not given:
            yield required(
                path, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            )
        elif len(given) > 1:
            yield invalid(
                path,
                {field: claim[field] for field in given},
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                "specified",
            )


def _timing_rules(spec: Cursor) -> Iterator[FieldError]:
    deadline = spec["activeDeadlineSeconds"]
    seconds = deadline.integer()
    if seconds is not None and not 1 <= seconds <= INT32_MAX:
        yield deadline.invalid(f"must be between 1 and {INT32_MAX}, inclusive")
    grace = spec["terminationGracePeriodSeconds"]
    seconds = grace.integer()
    if seconds is not None and seconds < 0:
        yield grace.invalid("must be greater than or equal to 0")


def _text_rules(spec: Document) -> Iterator[FieldError]:
    for field in ("hostname", "subdomain"):
        if text := spec.get(field):
            yield from container_rules.label_faults(text, f"spec.{field}")
    for field in ("nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName"):
        text = spec.get(field)
        if isinstance(text, str) and text and (fault := dns_subdomain_fault(text)):
            yield invalid(f"spec.{field}", text, fault)


def _gate_rules(spec: Cursor) -> Iterator[FieldError]:
    for gate in spec["schedulingGates"]:
        name = gate["name"].string()
        if name is not None and (fault := qualified_name_fault(name)):
            yield gate["name"].invalid(fault)
    if spec["schedulingGates"].value not in (None, []) and spec["nodeName"].string():
        yield spec["nodeName"].forbidden(
            "cannot be set until all schedulingGates have been cleared"
        )


def changes(old: Cursor, new: Cursor, known: Surroundings) -> Iterator[FieldError]:
    """Yield what of a pod was changed and may not be."""
    was, spec = old["spec"], new["spec"]
    if was.value == spec.value:
        return
    resized = False
    for containers in ("containers", "initContainers"):
        if len(tuple(was[containers])) != len(tuple(spec[containers])):
            yield spec[containers].forbidden("pod updates may not add or remove containers")
            resized = True
    if resized:
        return
    yield from _deadline_changes(was["activeDeadlineSeconds"], spec["activeDeadlineSeconds"])
    yield from _toleration_changes(was["tolerations"], spec["tolerations"])
    gates = {gate["name"].string() for gate in was["schedulingGates"]}
    for gate in spec["schedulingGates"]:
        name = gate["name"].string()
        if name is not None and name not in gates:
            yield gate["name"].forbidden(
                f"only deletion is allowed, but found new scheduling gate '{name}'"
            )
    if was["schedulingGates"].value not in (None, []):
        yield from _selector_changes(was["nodeSelector"], spec["nodeSelector"])
        yield from placement_rules.tightening_faults(was["affinity"], spec["affinity"])
    if changed := _changed(was, spec, known.subresource):
        yield spec.forbidden(f"{MAY_CHANGE}; found changed: {', '.join(changed)}")


def _deadline_changes(was: Cursor, now: Cursor) -> Iterator[FieldError]:
    before, after = was.integer(), now.integer()
    if before is not None and not now:
        yield now.invalid("must not update from a positive integer to nil value")
    elif before is not None and after is not None and after > before:
        yield now.invalid("must be less than or equal to previous value")


def _toleration_changes(was: Cursor, now: Cursor) -> Iterator[FieldError]:
    kept = [_lasting(toleration.value) for toleration in now]
    for toleration in was:
        before = _lasting(toleration.value)
        if not any(same_content(before, after) for after in kept):
            yield now.forbidden(
                "existing toleration can not be modified except its tolerationSeconds"
            )
            return


def _lasting(toleration: Json) -> Json:
    if not isinstance(toleration, dict):
        return toleration
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _selector_changes(was: Cursor, now: Cursor) -> Iterator[FieldError]:
    for key, value in was.entries():
        if now.entry(key).value != value.value:
            yield now.invalid(f"only additions are allowed (found changed: {key})")


def _changed(was: Cursor, now: Cursor, subresource: str) -> list[str]:
    """Return the fields of a pod's spec that differ, and may not through this subresource."""
    before, after = was.object() or {}, now.object() or {}
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
    if was["schedulingGates"].value not in (None, []):
        free |= {"nodeSelector", "affinity"}
    grace = was["terminationGracePeriodSeconds"].integer()
    if grace is not None and grace < 0 and now["terminationGracePeriodSeconds"].integer() == 1:
        free.add("terminationGracePeriodSeconds")
    if subresource == "binding" and not was["nodeName"].string():
        free.add("nodeName")
    if subresource == "ephemeralcontainers":
        free.add("ephemeralContainers")
    masked = {"image", "resources"} if subresource == "resize" else {"image"}
    found: list[str] = []
    for field in dict.fromkeys((*before, *after)):
        one, other = before.get(field), after.get(field)
        if one == other:
            continue
        if field in ("containers", "initContainers"):
            one, other = _masked(one, masked), _masked(other, masked)
        if field not in free and not same_content(one, other):
            found.append(shown(field).strip('"'))
    return found


def _masked(containers: Json, fields: set[str]) -> Json:
    if not isinstance(containers, list):
        return containers
    kept: list[Json] = []
    for container in containers:
        if isinstance(container, dict):
            rest: Document = {key: below for key, below in container.items() if key not in fields}
            kept.append(rest)
        else:
            kept.append(container)
    return kept
