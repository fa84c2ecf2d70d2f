"""CustomResourceDefinition: a kind that a user brings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spinney.api import openapi
from spinney.api.core import structural
from spinney.api.core.builtin import Bare, Finer, built_in, immutable
from spinney.api.core.services import name_fault as label_fault
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, list_at, object_at, string_at, with_value
from spinney.meta.errors import FieldError
from spinney.meta.metadata import dns_subdomain_fault

APPROVED = "api-approved.kubernetes.io"
"""The annotation a kind in a group of Kubernetes' own must carry."""

COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
SCOPES = ("Cluster", "Namespaced")
WARNINGS_MAX = 20
"""How many things that are not judged a writer is told of one by one."""

_PATH = re.compile(r"\.[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*")


def _default(document: Document) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    names = spec.get("names")
    kind = string_at(names, ["kind"])
    if isinstance(names, dict) and kind:
        if not names.get("singular"):
            names = {**names, "singular": kind.lower()}
        if not names.get("listKind"):
            names = {**names, "listKind": f"{kind}List"}
        document = with_value(document, ["spec", "names"], names)
    if spec.get("conversion") is None:
        document = with_value(document, ["spec", "conversion"], {"strategy": "None"})
    return document


def _rules(new: Cursor) -> Iterator[FieldError]:
    spec = new["spec"]
    if spec.object() is None:
        return
    group, plural = spec["group"], spec["names"]["plural"]
    name = new.at("metadata", "name")
    if (
        (text := name.string())
        and (first := plural.string())
        and (rest := group.string())
        and text != f"{first}.{rest}"
    ):
        yield name.invalid('must be spec.names.plural+"."+spec.group')
    yield from _group_faults(group)
    if (scope := spec["scope"].string()) is not None and scope not in SCOPES:
        yield spec["scope"].not_supported(SCOPES)
    yield from _name_rules(spec["names"])
    yield from _version_rules(spec["versions"])
    yield from _conversion_rules(spec["conversion"])
    if spec["preserveUnknownFields"].boolean():
        yield spec["preserveUnknownFields"].invalid(
            "must be false: use x-kubernetes-preserve-unknown-fields where fields are to be kept"
        )
    served = {version["name"].string() for version in spec["versions"]}
    for stored in new.at("status", "storedVersions"):
        if stored.string() is not None and stored.string() not in served:
            yield stored.invalid("must appear in spec.versions")


def _group_faults(group: Cursor) -> Iterator[FieldError]:
    text = group.string()
    if text == "":
        yield group.required()
    elif text is not None:
        if fault := dns_subdomain_fault(text):
            yield group.invalid(fault)
        elif "." not in text:
            yield group.invalid("should be a domain with at least one dot")


def _name_rules(names: Cursor) -> Iterator[FieldError]:
    for field in ("plural", "singular"):
        yield from _label_faults(names[field], names[field].string())
    for field in ("kind", "listKind"):
        kind = names[field]
        text = kind.string()
        if text == "":
            yield kind.required()
        elif text is not None and (fault := label_fault(text.lower())):
            yield kind.invalid(f"may have mixed case, but should otherwise match: {fault}")
    if names["kind"].string() and names["kind"].string() == names["listKind"].string():
        yield names["listKind"].invalid("kind and listKind may not be the same")
    for field in ("shortNames", "categories"):
        for name in names[field]:
            yield from _label_faults(name, name.string())


def _label_faults(name: Cursor, text: str | None) -> Iterator[FieldError]:
    if text == "":
        yield name.required()
    elif text is not None and (fault := label_fault(text)):
        yield name.invalid(fault)


def _version_rules(versions: Cursor) -> Iterator[FieldError]:
    seen: set[str] = set()
    for version in versions:
        name = version["name"]
        text = name.string()
        yield from _label_faults(name, text)
        if text and text in seen:
            yield name.duplicate("must contain unique version names")
        seen.add(text or "")
        root = version["schema"]["openAPIV3Schema"]
        if version.object() is not None and not root:
            yield root.required("schemas are required")
        yield from structural.root_faults(root)
        yield from _subresource_rules(version["subresources"])
        for column in version["additionalPrinterColumns"]:
            yield from _column_rules(column)
        for field in version["selectableFields"]:
            yield from _path_faults(field["jsonPath"], "")
    storing = sum(version["storage"].boolean() is True for version in versions)
    if isinstance(versions.value, list) and storing != 1:
        found = [version["name"].string() for version in versions if version["storage"].boolean()]
        yield Cursor([*found], versions.path).invalid(
            "must have exactly one version marked as storage version"
        )


def _subresource_rules(subresources: Cursor) -> Iterator[FieldError]:
    scale = subresources["scale"]
    if scale.object() is None:
        return
    yield from _path_faults(scale["specReplicasPath"], ".spec")
    yield from _path_faults(scale["statusReplicasPath"], ".status")
    selector = scale["labelSelectorPath"]
    text = selector.string()
    if text and not text.startswith((".spec.", ".status.")):
        yield selector.invalid("should be a json path under either .spec or .status")
    elif text:
        yield from _path_faults(selector, "")


def _path_faults(path: Cursor, under: str) -> Iterator[FieldError]:
    text = path.string()
    if text == "":
        yield path.required()
    elif text is not None and not (_PATH.fullmatch(text) and text.startswith(f"{under}.")):
        yield path.invalid(f"should be a json path under {under or 'the object'}, without brackets")


def _column_rules(column: Cursor) -> Iterator[FieldError]:
    for field in ("name", "jsonPath", "type"):
        if column[field].string() == "":
            yield column[field].required()
    sort = column["type"].string()
    if sort and sort not in COLUMN_TYPES:
        yield column["type"].invalid(f"must be one of {','.join(COLUMN_TYPES)}")
    path = column["jsonPath"].string()
    if path and not path.startswith("."):
        yield column["jsonPath"].invalid('must be a simple json path starting with "."')
    if (priority := column["priority"].integer()) is not None and priority < 0:
        yield column["priority"].invalid("must be greater than or equal to 0")


def _conversion_rules(conversion: Cursor) -> Iterator[FieldError]:
    strategy, webhook = conversion["strategy"], conversion["webhook"]
    if strategy.string() == "None" and webhook:
        yield webhook.forbidden("should not be set when strategy is not set to Webhook")
    elif strategy.string() == "Webhook":
        if webhook["clientConfig"].object() is None:
            yield webhook["clientConfig"].required("required when strategy is set to Webhook")
        if webhook["conversionReviewVersions"].value in (None, []):
            yield webhook["conversionReviewVersions"].required()


def _is_established(document: Document) -> bool:
    return any(
        string_at(condition, ["type"]) == "Established"
        and string_at(condition, ["status"]) == "True"
        for condition in list_at(document, ["status", "conditions"])
    )


def _changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    was, spec = old["spec"], new["spec"]
    yield from immutable(was["group"], spec["group"])
    yield from immutable(was["names"]["plural"], spec["names"]["plural"])
    if _is_established(old.object() or {}):
        yield from immutable(was["scope"], spec["scope"])
        yield from immutable(was["names"]["kind"], spec["names"]["kind"])


def _births(new: Cursor) -> Iterator[FieldError]:
    """Yield what holds of new definitions alone: who may add to groups of Kubernetes' own."""
    group = new["spec"]["group"].string() or ""
    approval = new["metadata"]["annotations"].entry(APPROVED)
    is_protected = group.endswith((".k8s.io", ".kubernetes.io"))
    if is_protected and approval.value in (None, ""):
        yield approval.required(
            f'protected groups must have approval annotation "{APPROVED}", see '
            "https://github.com/kubernetes/enhancements/pull/1111"
        )


def _advise(new: Cursor, _old: Cursor | None, _known: Surroundings) -> Iterator[str]:
    spec = new["spec"]
    versions = tuple(spec["versions"])
    told: list[str] = []
    for version in versions:
        root = object_at(version.value, ["schema", "openAPIV3Schema"])
        name = version["name"].string()
        told += [f"{name} {what}" for what in openapi.unjudged(openapi.schema_from(root))]
    for what in told[:WARNINGS_MAX]:
        yield f"not evaluated here, any value is taken: {what}"
    if len(told) > WARNINGS_MAX:
        yield f"not evaluated here: {len(told) - WARNINGS_MAX} more"
    if spec["conversion"]["strategy"].string() == "Webhook":
        others = [
            version["name"].string() or ""
            for version in versions
            if version["served"].boolean() and not version["storage"].boolean()
        ]
        if others:
            yield (
                "conversion webhooks are not called: only the storage version is served, not "
                + ", ".join(others)
            )


KIND = built_in(
    Names(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        singular="customresourcedefinition",
        short=("crd", "crds"),
        categories=("api-extensions",),
    ),
    Bare,
    finer={
        "": Finer(required=("spec",)),
        "spec.conversion.strategy": Finer(enum=("None", "Webhook")),
        "spec.versions.additionalPrinterColumns.priority": Finer(minimum=0),
    },
    namespaced=False,
    has_status=True,
    has_status_rules=True,
    default=_default,
    rules=_rules,
    births=_births,
    changes=_changes,
    advise=_advise,
)
