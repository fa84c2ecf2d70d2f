"""What must hold of a pod, and what of it may still change; worded as Kubernetes does."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.api.core.builtin import port_faults
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, same_content
from spinney.meta.errors import FieldError, shown
from spinney.meta.metadata import dns_label_fault, label_faults, qualified_name_fault
from spinney.meta.quantities import canonical, parse_quantity
from spinney.meta.schemas import INT32_MAX

_HANDLERS = ("exec", "grpc", "httpGet", "sleep", "tcpSocket")

MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def rules(new: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with a pod, new or changed."""
    spec = new["spec"]
    if spec["containers"].value == []:
        yield spec["containers"].required()
    volumes = {volume["name"].string() for volume in spec["volumes"]}
    for volume in spec["volumes"]:
        yield from _label_faults(volume["name"])
    seen: set[str] = set()
    for containers in ("containers", "initContainers"):
        for container in spec[containers]:
            name = container["name"]
            if name.string() in seen and containers == "initContainers":
                yield name.duplicate()
            seen.add(name.string() or "")
            yield from _container_rules(container, volumes, spec)
    yield from _timing_rules(spec)
    yield from label_faults(spec["nodeSelector"])
    for toleration in spec["tolerations"]:
        yield from _toleration_rules(toleration)
    for field in ("hostname", "subdomain"):
        if spec[field].string():
            yield from _label_faults(spec[field])
    yield from _gate_rules(spec)


def _label_faults(name: Cursor) -> Iterator[FieldError]:
    text = name.string()
    if text == "":
        yield name.required()
    elif text is not None and (fault := dns_label_fault(text)):
        yield name.invalid(fault)


def _container_rules(
    container: Cursor, volumes: set[str | None], spec: Cursor
) -> Iterator[FieldError]:
    yield from _label_faults(container["name"])
    image = container["image"]
    if image.value in (None, ""):
        yield image.required()
    elif (text := image.string()) is not None and text != text.strip():
        yield image.invalid("must not have leading or trailing whitespace")
    yield from _port_rules(container["ports"], spec["hostNetwork"].boolean() is True)
    for variable in container["env"]:
        if variable["name"].string() == "":
            yield variable["name"].required()
        source = variable["valueFrom"]
        if source.object() is not None and variable["value"].string():
            yield source.invalid("may not be specified when `value` is not empty")
    yield from _mount_rules(container["volumeMounts"], volumes)
    yield from _resource_rules(container["resources"])
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield from _probe_rules(container[field], field)


def _port_rules(ports: Cursor, host_network: bool) -> Iterator[FieldError]:
    names: set[str] = set()
    for port in ports:
        if (name := port["name"].string()) is not None and name:
            if len(name) > 15:
                yield port["name"].invalid("must be no more than 15 characters")
            elif fault := dns_label_fault(name):
                yield port["name"].invalid(fault)
            elif name in names:
                yield port["name"].duplicate()
            names.add(name)
        yield from port_faults(port["containerPort"])
        host = port["hostPort"].integer()
        if host:
            yield from port_faults(port["hostPort"])
            if host_network and host != port["containerPort"].integer():
                yield port["hostPort"].invalid(
                    "must match `containerPort` when `hostNetwork` is true"
                )


def _mount_rules(mounts: Cursor, volumes: set[str | None]) -> Iterator[FieldError]:
    paths: set[str] = set()
    for mount in mounts:
        name, path = mount["name"], mount["mountPath"]
        if name.string() == "":
            yield name.required()
        elif name.string() is not None and name.string() not in volumes:
            yield name.not_found("")
        text = path.string()
        if text == "":
            yield path.required()
        elif text is not None and text in paths:
            yield path.invalid("must be unique")
        paths.add(text or "")


def _resource_rules(resources: Cursor) -> Iterator[FieldError]:
    limits = resources["limits"]
    for name, request in resources["requests"].entries():
        limit = limits.entry(name).value
        asked, most = _amount(request.value), _amount(limit)
        if asked is not None and asked < 0:
            yield request.invalid("must be greater than or equal to 0")
        if asked is not None and most is not None and asked > most:
            assert isinstance(limit, (str, int))
            yield request.invalid(
                f"must be less than or equal to {name} limit of {canonical(limit)}"
            )
    for _, limit_cursor in limits.entries():
        amount = _amount(limit_cursor.value)
        if amount is not None and amount < 0:
            yield limit_cursor.invalid("must be greater than or equal to 0")


def _amount(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    try:
        return parse_quantity(value)
    except ValueError:
        return None


def _probe_rules(probe: Cursor, field: str) -> Iterator[FieldError]:
    if probe.object() is None:
        return
    handlers = [name for name in _HANDLERS if probe[name].object() is not None]
    if not handlers:
        yield probe.required("must specify a handler type")
    for name in handlers[1:]:
        yield probe[name].forbidden("may not specify more than 1 handler type")
    threshold = probe["successThreshold"].integer()
    if field != "readinessProbe" and threshold is not None and threshold != 1:
        yield probe["successThreshold"].invalid("must be 1")


def _timing_rules(spec: Cursor) -> Iterator[FieldError]:
    deadline = spec["activeDeadlineSeconds"]
    seconds = deadline.integer()
    if seconds is not None and not 1 <= seconds <= INT32_MAX:
        yield deadline.invalid(f"must be between 1 and {INT32_MAX}, inclusive")
    grace = spec["terminationGracePeriodSeconds"]
    seconds = grace.integer()
    if seconds is not None and seconds < 0:
        yield grace.invalid("must be greater than or equal to 0")


def _toleration_rules(toleration: Cursor) -> Iterator[FieldError]:
    key, operator = toleration["key"].string(), toleration["operator"]
    if key:
        if fault := qualified_name_fault(key):
            yield toleration["key"].invalid(fault)
    elif toleration.object() is not None and operator.string() != "Exists":
        yield operator.invalid(
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
    if operator.string() == "Exists" and toleration["value"].string():
        yield operator.invalid("value must be empty when `operator` is 'Exists'")
    if toleration["tolerationSeconds"] and toleration["effect"].string() != "NoExecute":
        yield toleration["effect"].invalid(
            "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )


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
