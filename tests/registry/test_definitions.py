"""CustomResourceDefinitions: kinds that come, change and go."""

from __future__ import annotations

import pytest
from registry_worlds import clique, object_of, opened, running, story

from spinney.meta.errors import BadRequest, Invalid, MethodNotAllowed
from spinney.meta.references import GroupKind
from spinney.registry.definitions import is_established

DEFINITIONS = "customresourcedefinitions"
GROUP = "example.com"
WIDGET = GroupKind(group=GROUP, kind="Widget")


def version(name="v1", *, storage=True, served=True, **spec):
    properties = {
        "size": {"type": "integer", "minimum": 0, "default": 1},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        **spec,
    }
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "properties": properties},
                    "status": {
                        "type": "object",
                        "properties": {"replicas": {"type": "integer"}},
                    },
                },
            }
        },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.replicas",
            },
        },
    }


def definition(plural="widgets", kind="Widget", *versions, **names):
    return object_of(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.{GROUP}",
        "",
        spec={
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [*versions] or [version()],
        },
    )


def widget(name="w", api="v1", **spec):
    return object_of(f"{GROUP}/{api}", "Widget", name, spec=spec)


async def defined(world, *arguments, **names):
    await world.create(definition(*arguments, **names))
    await world.settle()


def conditions(world, name="widgets"):
    found = world.get("customresourcedefinitions", f"{name}.{GROUP}", "")
    return {
        item["type"]: (item["status"], item["reason"], item["message"])
        for item in found["status"]["conditions"]
    }


@story
async def test_a_definition_makes_a_kind_come(world):
    await world.create(definition(shortNames=["wd"]))
    assert world.world.catalog.get(WIDGET) is None
    changes = world.world.catalog.changes
    await world.settle()
    assert world.world.catalog.changes > changes
    assert conditions(world) == {
        "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
        "Established": (
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
    }
    status = world.get("customresourcedefinitions", "widgets.example.com", "")["status"]
    assert status["storedVersions"] == ["v1"]
    assert status["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
    }
    made = (await world.create(widget(colour="red"))).document
    assert made["spec"] == {"colour": "red", "size": 1}
    assert made["metadata"]["generation"] == 1


@story
async def test_its_schema_judges_defaults_and_prunes(world):
    await defined(world)
    with pytest.raises(Invalid) as refused:
        await world.create(widget(size=-1, colour="green"))
    assert [item["field"] for item in refused.value.details["causes"]] == [
        "spec.size",
        "spec.colour",
    ]
    with pytest.raises(BadRequest, match=r'unknown field "spec\.nope"'):
        await world.create(widget(nope=1))
    outcome = await world.create(widget(nope=1), field_validation="Warn")
    assert outcome.warnings == ('unknown field "spec.nope"',)
    assert outcome.document["spec"] == {"size": 1}


@story
async def test_its_subresources_work(world):
    await defined(world)
    await world.create(widget())
    await world.patch("widgets", "w", {"status": {"replicas": 2}}, subresource="status")
    scale = (await world.scale("widgets", "w", 5)).document
    assert (scale["spec"], scale["status"]) == ({"replicas": 5}, {"replicas": 2})
    found = world.get("widgets", "w")
    assert found["spec"]["size"] == 5
    assert found["metadata"]["generation"] == 2


@story
async def test_a_changed_definition_changes_the_kind(world):
    await defined(world)
    await world.create(widget())
    more = [version(extra={"type": "string", "default": "yes"})]
    await world.patch(
        "customresourcedefinitions",
        "widgets.example.com",
        {"spec": {"versions": more}},
        namespace="",
    )
    await world.settle()
    assert (await world.create(widget("x"))).document["spec"]["extra"] == "yes"


@story
async def test_versions_are_ways_to_see_one_object(world):
    await defined(
        world, "widgets", "Widget", version("v1", storage=False), version("v2"), shortNames=["wd"]
    )
    made = (await world.create(widget("w", "v1", colour="red"))).document
    assert made["apiVersion"] == "example.com/v1"
    assert world.get("widgets", "w")["spec"]["colour"] == "red"
    stored = world.store.list(WIDGET)
    assert [item.document()["apiVersion"] for item in stored] == ["example.com/v2"]
    await world.apply(widget("w", "v2", colour="red"), force=True)
    later = [version("v1"), version("v2", storage=False)]
    await world.patch(
        "customresourcedefinitions",
        "widgets.example.com",
        {"spec": {"versions": later}},
        namespace="",
    )
    await world.settle()
    status = world.get("customresourcedefinitions", "widgets.example.com", "")["status"]
    assert status["storedVersions"] == ["v2", "v1"]


@story
async def test_names_that_are_taken_are_not_accepted(world):
    await defined(world, shortNames=["wd"])
    await defined(world, "gadgets", "Gadget", shortNames=["wd"])
    told = conditions(world, "gadgets")
    assert told["NamesAccepted"] == ("False", "ShortNamesConflict", '"wd" is already in use')
    assert told["Established"] == ("False", "NotAccepted", "not all names are accepted")
    assert world.world.catalog.get(GroupKind(group=GROUP, kind="Gadget")) is None
    await defined(world, "others", "Widget", singular="other")
    assert conditions(world, "others")["NamesAccepted"][1] == "KindConflict"
    assert world.world.catalog.get(WIDGET).names.plural == "widgets"
    await world.delete("customresourcedefinitions", "widgets.example.com", namespace="")
    await world.settle()
    assert conditions(world, "gadgets")["Established"][0] == "True", "free names are taken up"


def of_podcliques(**names):
    made = definition("podcliques", "PodClique", **names)
    made["metadata"]["name"] = "podcliques.grove.io"
    made["spec"]["group"] = "grove.io"
    return made


@story
async def test_a_definition_of_a_kind_of_ours_changes_nothing(world):
    """People bring our CRDs because clusters need them; here the kinds are there already."""
    await world.create(clique("c"))
    await world.create(of_podcliques())
    await world.settle()
    found = world.get(DEFINITIONS, "podcliques.grove.io", "")
    assert is_established(found)
    assert not world.world.catalog.is_custom(GroupKind(group="grove.io", kind="PodClique"))
    await world.create(clique("d"))
    await world.delete(DEFINITIONS, "podcliques.grove.io", namespace="")
    await world.settle()
    assert not world.has(DEFINITIONS, "podcliques.grove.io", "")
    assert world.names("podcliques") == ["c", "d"]


@story
async def test_a_name_of_ours_is_taken(world):
    made = of_podcliques()
    made["metadata"]["name"] = "podcliquesets.grove.io"
    made["spec"]["names"] = {"plural": "podcliquesets", "kind": "Other"}
    await world.create(made)
    await world.settle()
    assert not is_established(world.get(DEFINITIONS, "podcliquesets.grove.io", ""))
    assert world.world.catalog.get(GroupKind(group="grove.io", kind="Other")) is None


@story
async def test_with_a_definition_go_its_objects_first(world):
    await defined(world)
    await world.create(widget("free"))
    await world.create(
        object_of("example.com/v1", "Widget", "held", metadata={"finalizers": ["example.com/h"]})
    )
    outcome = await world.delete("customresourcedefinitions", "widgets.example.com", namespace="")
    assert outcome.document["metadata"]["finalizers"] == [
        "customresourcecleanup.apiextensions.k8s.io"
    ]
    await world.settle()
    assert world.names("widgets") == ["held"]
    assert conditions(world)["Terminating"] == (
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    )
    with pytest.raises(MethodNotAllowed) as refused:
        await world.create(widget("new"))
    assert refused.value.message == (
        "create not allowed while custom resource definition is terminating"
    )
    kind = world.world.catalog.get(WIDGET)
    await world.patch("widgets", "held", {"metadata": {"finalizers": None}})
    await world.settle()
    assert not world.has("customresourcedefinitions", "widgets.example.com", "")
    assert world.world.catalog.get(WIDGET) is None
    assert world.store.list(kind.stored_kind) == []
    await defined(world)
    await world.create(widget("new"))


@story
async def test_a_definition_that_was_never_accepted_just_goes(world):
    await defined(world)
    await defined(world, "others", "Widget")
    await world.create(widget())
    await world.delete("customresourcedefinitions", "others.example.com", namespace="")
    await world.settle()
    assert not world.has("customresourcedefinitions", "others.example.com", "")
    assert world.names("widgets") == ["w"], "they are not its own"


@story
async def test_a_restart_serves_the_kind_without_a_write(world):
    await defined(world)
    await world.create(widget())
    journal = world.store._journal
    last = world.store.version
    await world.store.close()
    later = await opened(journal, clock=world.clock)
    assert later.store.version == last
    assert later.get("widgets", "w")["spec"] == {"size": 1}
    await later.delete("customresourcedefinitions", "widgets.example.com", namespace="")
    journal = later.store._journal
    await later.store.close()
    last = await opened(journal, clock=world.clock)
    assert last.world.catalog.get(WIDGET) is None
    assert last.store.list(WIDGET) == []
    await last.store.close()


@story
async def test_a_kind_of_a_user_lies_in_namespaces_too(world):
    await defined(world)
    await world.create(object_of("v1", "Namespace", "old", ""))
    made = widget()
    made["metadata"]["namespace"] = "old"
    await world.create(made)
    await world.delete("namespaces", "old", namespace="")
    await world.settle()
    assert not world.has("namespaces", "old", "")


@story
async def test_it_happens_by_itself(world):
    keepers = running(world)
    await world.create(definition())
    await world.sleep(milliseconds=1)
    await world.create(widget())
    keepers.cancel()
