"""What pods are told by environment variables: which, in what order, and who gives way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.decisions.making import environment
from spinney.meta.documents import Document, Json, list_at, string_at, value_at

POD = environment.of_pod("set", 1, "set-1-a", "space")
GROUP = environment.of_group(7)


def names(container: Json) -> list[str]:
    return [string_at(item, ["name"]) for item in list_at(container, ["env"])]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("GROVE_PCS_NAME", "set"),
        ("GROVE_PCS_INDEX", "1"),
        ("GROVE_PCLQ_NAME", "set-1-a"),
        ("GROVE_HEADLESS_SERVICE", "set-1.space.svc.cluster.local"),
        ("GROVE_PCLQ_POD_INDEX", "metadata.labels['grove.io/podclique-pod-index']"),
        ("GROVE_PCSG_NAME", "metadata.labels['grove.io/podcliquescalinggroup']"),
        ("GROVE_PCSG_TEMPLATE_NUM_PODS", "7"),
        (
            "GROVE_PCSG_INDEX",
            "metadata.labels['grove.io/podcliquescalinggroup-replica-index']",
        ),
    ],
)
def test_each_variable_says_what_it_should(name: str, says: str) -> None:
    (found,) = (item for item in (*POD, *GROUP) if item["name"] == name)
    path = value_at(found, ["valueFrom", "fieldRef", "fieldPath"])
    assert (found.get("value") or path) == says


ORDER = [
    "GROVE_PCS_NAME",
    "GROVE_PCS_INDEX",
    "GROVE_PCLQ_NAME",
    "GROVE_HEADLESS_SERVICE",
    "GROVE_PCLQ_POD_INDEX",
    "GROVE_PCSG_NAME",
    "GROVE_PCSG_TEMPLATE_NUM_PODS",
    "GROVE_PCSG_INDEX",
]


def told(spec: Document) -> Document:
    """Return a pod spec of a group as its pods have it: the PodClique's part, then the pod's."""
    return environment.injected(environment.injected(spec, GROUP), POD)


def test_the_pods_own_come_first_then_the_groups_then_the_users() -> None:
    env: Json = [{"name": "MINE", "value": "$(GROVE_PCS_NAME)"}]
    spec = told({"containers": [{"name": "main", "env": env}]})
    (container,) = list_at(spec, ["containers"])
    assert names(container) == [*ORDER, "MINE"]


VARIABLES = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from([*ORDER, "A", "B", "C"]), "value": st.text()}),
    max_size=6,
)
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": st.just("it")}, optional={"env": VARIABLES}), max_size=3
)


@pytest.mark.law
@given(CONTAINERS, CONTAINERS)
def test_every_container_is_told_and_keeps_its_own(
    main: list[Document], first: list[Document]
) -> None:
    spec: Document = {"containers": [*main], "initContainers": [*first], "other": 1}
    made = told(spec)
    assert made["other"] == 1
    for field, given_ in (("containers", main), ("initContainers", first)):
        found = list_at(made, [field])
        assert len(found) == len(given_)
        for before, after in zip(given_, found, strict=True):
            own = [item for item in list_at(before, ["env"]) if string_at(item, ["name"]) in "ABC"]
            env = list_at(after, ["env"])
            assert env[: len(ORDER)] == [*POD, *GROUP]
            assert env[len(ORDER) :] == own
    assert told(made) == made
