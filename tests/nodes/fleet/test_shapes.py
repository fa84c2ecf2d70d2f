"""What `--nodes` means, and what it says of what it cannot mean."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.nodes.fleet import shapes
from spinney.nodes.fleet.shapes import BadShape, Level, NodeTaint, Shape


def test_a_shape_says_everything_about_its_nodes():
    shape = shapes.parse_shape(
        "sim:100,cpu=64,memory=1024Gi,nvidia.com/gpu=8,pods=250,name=gpu,topology=zone:2/rack:4,"
        "start=200ms,ready=1s,stop=1m,failures=0.01,label.team=a,label.example.com/b=c,"
        "taint=gpu=yes:NoSchedule,taint=slow:NoExecute"
    )
    assert shape == Shape(
        count=100,
        name="gpu",
        capacity={
            "cpu": "64",
            "memory": "1Ti",
            "ephemeral-storage": "1Ti",
            "pods": "250",
            "nvidia.com/gpu": "8",
        },
        topology=(
            Level(key="topology.kubernetes.io/zone", word="zone", count=2),
            Level(key="topology.spinney.dev/rack", word="rack", count=4),
        ),
        labels={"team": "a", "example.com/b": "c"},
        taints=(
            NodeTaint(key="gpu", value="yes", effect="NoSchedule"),
            NodeTaint(key="slow", effect="NoExecute"),
        ),
        start=timedelta(milliseconds=200),
        ready=timedelta(seconds=1),
        stop=timedelta(minutes=1),
        failures_per_million=10_000,
    )


@pytest.mark.parametrize(
    ("texts", "local", "names"),
    [
        ((), True, []),
        (("local",), True, []),
        (("none",), False, []),
        (("sim:2",), False, ["sim"]),
        (("local", "sim:2", "sim:1,name=gpu"), True, ["sim", "gpu"]),
        (("local", "local"), True, []),
    ],
)
def test_which_nodes_there_are(texts, local, names):
    nodes = shapes.parse(texts)
    assert nodes.local is local
    assert [shape.name for shape in nodes.shapes] == names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must be local, none, or sim:COUNT"),
        ("sim", "must be local, none, or sim:COUNT"),
        ("kind:3", "must be local, none, or sim:COUNT"),
        ("sim:", '"" must be a number of nodes from 1 to 100000'),
        ("sim:0", '"0" must be a number of nodes'),
        ("sim:-1", '"-1" must be a number of nodes'),
        ("sim:1000000", '"1000000" must be a number of nodes'),
        ("sim:99999999999999999999", "must be a number of nodes"),
        ("sim:²", "must be a number of nodes"),
        ("sim:1,cpu", '"cpu" must be KEY=VALUE'),
        ("sim:1,", '"" must be KEY=VALUE'),
        ("sim:1,cpu=", '"cpu=" must be KEY=VALUE'),
        ("sim:1,cpu=4,cpu=5", "cpu stands twice"),
        ("sim:1,cpu=four", 'cpu "four": must be a quantity'),
        ("sim:1,cpu=-1", 'cpu "-1": must be an amount that is not negative'),
        ("sim:1,pods=1.5", 'pods "1.5": must be a whole number'),
        ("sim:1,nvidia.com/gpu=500m", "must be a whole number"),
        ("sim:1,gpu=8", '"gpu" is not known: must be one of cpu, memory'),
        ("sim:1,a b/c=1", 'resource "a b/c"'),
        ("sim:1,name=GPU", 'name "GPU"'),
        ("sim:1,topology=zone", 'topology "zone": must be levels'),
        ("sim:1,topology=zone:0", 'topology "zone:0": must be levels'),
        ("sim:1,topology=zone:2/", "must be levels"),
        ("sim:1,topology=zone:2/zone:3", "a level stands twice"),
        ("sim:1,topology=host:2", "host is no level"),
        ("sim:1,topology=Z!:2", 'topology level "Z!"'),
        ("sim:1,start=1", 'start "1": must be a duration with a unit'),
        ("sim:1,ready=-1s", 'ready "-1s": must not be negative'),
        ("sim:1,failures=2", 'failures "2": must be a share from 0 to 1'),
        ("sim:1,failures=101%", "must be a share from 0 to 1"),
        ("sim:1,failures=x", "must be a share from 0 to 1"),
        ("sim:1,label.=x", 'label "=x"'),
        ("sim:1,label.a=b c", 'label "a=b c"'),
        ("sim:1,taint=a", 'taint "a": must be KEY:EFFECT'),
        ("sim:1,taint=a:Never", "NoSchedule, PreferNoSchedule, NoExecute"),
    ],
)
def test_what_cannot_be_is_refused_with_what_was_found_and_what_can(text, told):
    with pytest.raises(BadShape) as caught:
        shapes.parse([text])
    assert told in str(caught.value)
    assert str(caught.value).startswith(f"--nodes {text}: ")


def test_two_shapes_need_two_names():
    with pytest.raises(BadShape, match='named "sim" too'):
        shapes.parse(["sim:1", "sim:2"])


def test_none_stands_alone():
    with pytest.raises(BadShape, match="--nodes none"):
        shapes.parse(["none", "sim:1"])


@pytest.mark.parametrize(
    ("text", "per_million"),
    [("0", 0), ("1", 10**6), ("0.25", 250_000), ("0.000001", 1), ("1%", 10_000), ("0.5%", 5_000)],
)
def test_shares_are_kept_exactly(text, per_million):
    assert shapes.parse_shape(f"sim:1,failures={text}").failures_per_million == per_million


@pytest.mark.law
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.integers(1, 200),
)
def test_domains_nest_and_are_equally_full(counts, node_count):
    """Every narrow domain lies in one wide one; no domain has two nodes more than another."""
    words = ("zone", "block", "rack")
    topology = "/".join(f"{word}:{count}" for word, count in zip(words, counts, strict=False))
    shape = shapes.parse_shape(f"sim:{node_count},topology={topology}")
    found = [shape.domains(index) for index in range(node_count)]
    keys = [level.key for level in shape.topology]
    for wide, narrow in itertools.pairwise(keys):
        above = {}
        for labels in found:
            assert above.setdefault(labels[narrow], labels[wide]) == labels[wide]
    leaves = Counter(labels[keys[-1]] for labels in found)
    assert max(leaves.values()) - min(leaves.values()) <= 1
    product = 1
    for count in counts:
        product *= count
    assert len(leaves) == min(product, node_count)


@pytest.mark.law
@given(st.text(alphabet="sim:1,=cpu/0.%az-", max_size=30))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    with contextlib.suppress(BadShape):
        assert shapes.parse([text]).texts == (text,)
