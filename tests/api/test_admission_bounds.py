"""Admission ends soon and says little, however much is wrong: nobody's manifest stops a server.

Each document is made so that every pair of its parts could have something to do with each other.
What compares them two by two runs into the time limit of all tests.
"""

from __future__ import annotations

import pytest

from spinney.api import kinds, podcliqueset, template_rules
from spinney.api.surroundings import Surroundings
from spinney.meta.documents import Document, Json
from spinney.testing import build

LONG = "x" * 100_000


def clique(name: str, **fields: Json) -> Document:
    spec: Document = {"roleName": name, "podSpec": {"containers": [{"name": "m"}]}}
    return {"name": name, "spec": spec, **fields}


def waiting(name: str, *others: str) -> Document:
    made = clique(name)
    return {**made, "spec": {**made["spec"], "startsAfter": [*others]}}  # type: ignore[dict-item]


def shared(*names: str) -> list[Json]:
    return [{"name": name, "scope": "PerReplica"} for name in names]


def constraint(name: str) -> Document:
    return {"topologyConstraint": {"topologyName": name, "pack": {"required": "rack"}}}


EXPLICIT: Document = {"cliqueStartupType": "CliqueStartupTypeExplicit"}
LETTERS = [f"c{index}" for index in range(300)]

HOSTILE: dict[str, Document] = {
    "names that look like joins": {"cliques": [clique(f"w-0-{i}") for i in range(1200)]},
    "names of many numbers": {
        "cliques": [clique("-".join("0" * (1 + i % 20)) + f"-{i}") for i in range(1200)],
        "podCliqueScalingGroups": [
            {"name": "-".join("0" * (1 + i)), "cliqueNames": [f"0-{19 + 20 * i}"]}
            for i in range(15)
        ],
    },
    "names that differ in dots": {
        "cliques": [clique(f"{i:011b}".replace("0", "a.").replace("1", "a-")) for i in range(1200)]
    },
    "one name many times": {"cliques": [clique("w")] * 2000},
    "many groups": {
        "cliques": [clique(f"c{i}") for i in range(1200)],
        "podCliqueScalingGroups": [
            {"name": f"g{i}", "cliqueNames": [f"c{i}"]} for i in range(1200)
        ],
    },
    "claims that look like joins": {
        "cliques": [clique("a")],
        "resourceSharing": shared(*(f"a-0-b{i}" for i in range(4000))),
    },
    "a long name shared often": {
        "cliques": [clique(LONG, resourceSharing=shared(*(f"b{i}" for i in range(3000))))]
    },
    "everyone waits for everyone": {
        **EXPLICIT,
        "cliques": [waiting(name, *LETTERS) for name in LETTERS],
    },
    "one long circle": {
        **EXPLICIT,
        "cliques": [waiting(f"c{i}", f"c{(i + 1) % 1500}") for i in range(1500)],
    },
    "every clique another topology": {
        "cliques": [clique(f"c{i}", **constraint(f"t{i}" * 20)) for i in range(1200)]
    },
    "unknown fields": {"cliques": [], **{f"clique{i}": 1 for i in range(10_000)}},
    "a long queue": {
        "cliques": [
            clique(f"c{i}", labels={"kai.scheduler/queue": LONG if i == 0 else "q"})
            for i in range(1200)
        ]
    },
    "a long group": {
        "cliques": [clique("a")],
        "podCliqueScalingGroups": [{"name": LONG, "cliqueNames": ["a"] * 10_000}],
    },
    "a long template shared with a namespace": {
        "cliques": [
            clique(f"c{i}", resourceSharing=[{**shared(LONG)[0], "namespace": "n"}])  # type: ignore[dict-item]
            for i in range(20)
        ],
        "resourceClaimTemplates": [{"name": LONG, "templateSpec": {}}],
    },
}


@pytest.mark.rule("1.7")
@pytest.mark.parametrize("template", HOSTILE.values(), ids=HOSTILE)
def test_whatever_is_wrong_is_told_soon_and_shortly(template: Document) -> None:
    document = build.podcliqueset("chat").with_("spec.template", template).document()
    known = Surroundings(default_scheduler="kai-scheduler")
    stored, faults = kinds.admit(podcliqueset.KIND, document, None, known)
    again, more = kinds.admit(podcliqueset.KIND, document, stored, known)
    assert again == stored
    for fault in (*faults, *more):
        assert len(fault.message) < 3000
        assert len(str(fault)) < 30_000


@pytest.mark.rule("1.7")
def test_a_long_name_is_told_shortly_at_every_clique() -> None:
    made = build.podcliqueset(LONG).with_(
        "spec.template", {"cliques": [clique(f"c{i}") for i in range(1200)]}
    )
    faults = kinds.admit(podcliqueset.KIND, made.document())[1]
    assert sum(len(str(fault)) for fault in faults) < 4_000_000


def test_circles_are_told_up_to_a_number() -> None:
    waits = {name: tuple(other for other in "abcdef" if other != name) for name in "abcdef"}
    assert len(template_rules.circles(waits)) == template_rules.CIRCLES_TOLD_MAX
    assert template_rules.circles({"a": ("b",), "b": ("a",), "c": ("d",), "d": ("c",)}) == [
        ("a", "b"),
        ("c", "d"),
    ]
    assert template_rules.circles({"a": ("b", "c"), "b": ("c",), "c": ()}) == []
