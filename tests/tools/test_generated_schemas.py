"""How the published Kubernetes definitions become our schemas."""

import pytest

from tools import generate, schemas


def kind(group, version, name, **rest):
    served = [{"group": group, "version": version, "kind": name}]
    return {"type": ["object", "null"], "x-kubernetes-group-version-kind": served, **rest}


FULL = {
    "io.k8s.api.core.v1.Pod": kind("", "v1", "Pod"),
    "io.k8s.api.core.v1.Event": kind("", "v1", "Event"),
    "io.k8s.api.core.v1.Claim": {"type": "object"},
    "io.k8s.api.core.v1.Series": {"type": "object"},
    "io.k8s.api.events.v1.Event": kind("events.k8s.io", "v1", "Event"),
    "io.k8s.api.events.v1.Series": {"type": "object"},
    "io.k8s.api.resource.v1.Claim": kind("resource.k8s.io", "v1", "Claim"),
}


def test_the_committed_file_is_what_is_made():
    for path, body in schemas.files().items():
        assert (generate.ROOT / path).read_bytes() == body


def test_making_it_twice_gives_the_same_bytes():
    assert schemas.files() == schemas.files()


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("io.k8s.api.core.v1.Pod", "Pod"),
        ("io.k8s.api.core.v1.Event", "Event"),
        ("io.k8s.api.events.v1.Event", "events.k8s.io/Event"),
        ("io.k8s.api.core.v1.Series", "Series"),
        ("io.k8s.api.events.v1.Series", "events.k8s.io/Series"),
        ("io.k8s.api.resource.v1.Claim", "Claim"),
        ("io.k8s.api.core.v1.Claim", "core/Claim"),
    ],
)
def test_a_shared_name_belongs_to_the_kind_then_to_the_core_group(full, short):
    assert schemas.short_names(FULL, FULL)[full] == short


def test_a_closure_follows_references_round_in_circles():
    reference = {"$ref": "#/$defs/a.B"}
    full = {
        "a.A": {"properties": {"b": {"items": reference}}},
        "a.B": {"additionalProperties": {"$ref": "#/$defs/a.A"}},
        "a.C": {},
    }
    assert schemas.closure(full, ["a.A"]) == {"a.A", "a.B"}


def test_nothing_is_left_to_refer_to():
    made = schemas.definitions(schemas.published())

    def references(node):
        if isinstance(node, dict):
            if isinstance(node.get("core"), str):
                yield node["core"]
            for below in node.values():
                yield from references(below)

    assert {name for node in made.values() for name in references(node)} <= made.keys()


def test_no_prose_is_kept():
    (body,) = schemas.files().values()
    assert b'"description":"' not in body
    assert len(body) < 100_000
