"""The text of fields, as people see it; each golden text is whole."""

import pytest
from things import THING

from spinney.api import fields
from spinney.api.core import resolve
from spinney.api.kinds import OUR_KINDS

HEAD = "GROUP:      test.dev\nKIND:       Thing\nVERSION:    v1\n\n"

GOLDEN = {
    "thing": """\
DESCRIPTION:
    A thing with parts.

FIELDS:
  apiVersion	<string> -required-
    The group and version of the kind.

  kind	<string> -required-
    The kind.

  metadata	<ObjectMeta>
    Name, labels and what else all objects have.

  spec	<ThingSpec> -required-
    What it should be.

  status	<ThingStatus>
    What it is.
""",
    "thing.spec": """\
FIELD: spec <ThingSpec> -required-

DESCRIPTION:
    What it should be.
    What a thing should be.

RULE:       new things have no part named x

FIELDS:
  parts	<[]Part> -required-
    What it is made of.

  order	<string>
  enum: Any, Given
    In which order parts start.

  delay	<Duration>
    How long it waits, from the moment that its last part was last seen to be
    ready.

  most	<IntOrString> -spinney-
    How many at once, or a share.

  names	<[]string>
    Other names.

  free	<RawExtension>
    Whatever.

  zone	<string>
    Where.
""",
    "thing.spec.parts": """\
FIELD: parts <[]Part> -required-

DESCRIPTION:
    What it is made of.
    One part of a thing.

BOUNDS:     at least 1 item
KEYS:       items are told apart by name
RULE:       a part without replicas must have labels

FIELDS:
  name	<string> -required-
    What it is called.

  labels	<map[string]string>
    Its labels.

  replicas	<integer>
    How many of it.

  podSpec	<PodSpec> -required-
    What its pods are.

  metrics	<[]MetricSpec>
    What to scale by.
""",
    "thing.spec.order": """\
FIELD: order <string>
ENUM:
    Any
    Given

DESCRIPTION:
    In which order parts start.

DEFAULT:    Any
""",
    "thing.spec.parts.replicas": """\
FIELD: replicas <integer>

DESCRIPTION:
    How many of it.

DEFAULT:    1
BOUNDS:     0 to 9
EXAMPLE:    3
""",
    "thing.spec.parts[0].name": """\
FIELD: name <string> -required-

DESCRIPTION:
    What it is called.

BOUNDS:     1 to 63 characters
""",
    "thing.spec.most": """\
FIELD: most <IntOrString> -spinney-

DESCRIPTION:
    How many at once, or a share.

ORIGIN:     an addition of Spinney's
""",
    "thing.spec.zone": """\
FIELD: zone <string>

DESCRIPTION:
    Where.

PATTERN:    ^[a-z]+$
""",
    "thing.spec.names": """\
FIELD: names <[]string>

DESCRIPTION:
    Other names.

KEYS:       no item twice
""",
    "thing.status.seenAt": """\
FIELD: seenAt <Time>

DESCRIPTION:
    When it was last seen.
""",
    "thing.spec.parts.podSpec.containers.ports": """\
FIELD: ports <[]ContainerPort>

DESCRIPTION:
    This is Kubernetes' own: kubectl explain pod.spec.containers.ports

KEYS:       items are told apart by containerPort, protocol

FIELDS:
  containerPort	<integer> -required-
  hostIP	<string>
  hostPort	<integer>
  name	<string>
  protocol	<string>
""",
    "thing.spec.parts.podSpec.containers.ports.protocol": """\
FIELD: protocol <string>

DESCRIPTION:
    This is Kubernetes' own: kubectl explain pod.spec.containers.ports.protocol

DEFAULT:    TCP
""",
    "thing.spec.parts.metrics.resource": """\
FIELD: resource <ResourceMetricSource>

DESCRIPTION:
    This is Kubernetes' own: kubectl explain hpa.spec.metrics.resource

FIELDS:
  name	<string> -required-
  target	<MetricTarget> -required-
""",
}


@pytest.mark.parametrize("path", GOLDEN)
def test_a_field_is_described(path):
    _, steps = fields.parse_path(path)
    assert fields.describe(THING, steps) + "\n" == HEAD + GOLDEN[path]


def test_all_fields_are_listed_as_a_tree_with_kubernetes_types_folded():
    text = fields.describe(THING, (), recursive=True)
    assert (
        text.partition("FIELDS:\n")[2]
        == """\
  apiVersion	<string> -required-
  kind	<string> -required-
  metadata	<ObjectMeta>
  spec	<ThingSpec> -required-
    parts	<[]Part> -required-
      name	<string> -required-
      labels	<map[string]string>
      replicas	<integer>
      podSpec	<PodSpec> -required-
      metrics	<[]MetricSpec>
    order	<string>
    enum: Any, Given
    delay	<Duration>
    most	<IntOrString> -spinney-
    names	<[]string>
    free	<RawExtension>
    zone	<string>
  status	<ThingStatus>
    observedGeneration	<integer>
    seenAt	<Time>"""
    )


def test_a_kubernetes_type_is_unfolded_when_the_path_leads_into_it():
    path = ("spec", "parts", "podSpec", "schedulingGates")
    text = fields.describe(THING, path, recursive=True)
    assert text.endswith("FIELDS:\n  name\t<string> -required-")
    whole = fields.describe(THING, ("spec", "parts", "podSpec"), recursive=True)
    assert "\n      containerPort\t<integer> -required-\n" in whole


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "thing.spec.part",
            'thing.spec has no field "part", did you mean "parts"?\n'
            "fields: parts, order, delay, most, names, free, zone",
        ),
        (
            "thing.nope",
            'thing has no field "nope"\nfields: apiVersion, kind, metadata, spec, status',
        ),
        ("thing.spec.order.x", 'thing.spec.order is of type string and has no fields, found: "x"'),
        (
            "thing.spec.parts[2].labels.app",
            'thing.spec.parts.labels is of type map[string]string and has no fields, found: "app"',
        ),
        (
            "thing.spec.parts.podSpec.schedulingGates.nam",
            'thing.spec.parts.podSpec.schedulingGates has no field "nam", did you mean "name"?\n'
            "fields: name",
        ),
    ],
)
def test_a_wrong_step_is_told_with_what_there_is(path, message):
    with pytest.raises(fields.NoSuchField) as caught:
        fields.describe(THING, fields.parse_path(path)[1])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pcs", ("pcs", ())),
        ("pcs.spec", ("pcs", ("spec",))),
        ("pcs.spec.cliques[0].labels[app]", ("pcs", ("spec", "cliques", "labels"))),
        ("pcs.spec.", ("pcs", ("spec",))),
    ],
)
def test_a_path_is_read_as_errors_write_it(text, expected):
    assert fields.parse_path(text) == expected


def fields_of_ours(schema, path=()):
    """Yield every field that is declared here, not by Kubernetes."""
    for name, below in schema.properties.items():
        inner = fields.beneath(below)
        yield (*path, name), below
        if not (below.core or inner.core):
            yield from fields_of_ours(inner, (*path, name))


@pytest.mark.parametrize("key", OUR_KINDS, ids=lambda key: key.kind)
def test_every_field_of_ours_has_a_text(key):
    kind = OUR_KINDS[key]
    silent = [path for path, schema in fields_of_ours(kind.schema) if not schema.doc]
    assert silent == []
    for path, _ in fields_of_ours(kind.schema):
        assert "<empty>" not in fields.describe(kind, path)


@pytest.mark.parametrize("key", OUR_KINDS, ids=lambda key: key.kind)
def test_every_place_kubectl_is_asked_for_is_known(key):
    cores = {fields.beneath(schema).core for _, schema in fields_of_ours(OUR_KINDS[key].schema)}
    unfolding = {core for core in cores if core and resolve(core).properties}
    assert unfolding - {"Condition"} <= fields.KUBECTL_PATHS.keys()
