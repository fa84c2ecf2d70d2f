"""What a container is given, of all a pod may refer to."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.configuration import ConfigMap, Secret
from spinney.api.core.pod import Pod
from spinney.meta import records
from spinney.meta.documents import Document, Json
from spinney.meta.records import Record
from spinney.nodes.agent import environment, images, volumes
from spinney.nodes.agent.givens import Givens, Machine
from spinney.nodes.agent.images import Images
from spinney.nodes.agent.lacking import Lacking
from spinney.ports import Mount, Reader

R = TypeVar("R", bound=Record)
BYTES = bytes([0, 255])


class Shelf:
    """Holds a config map `settings` and a secret `keys`."""

    def get(self, record: type[R], namespace: str, name: str) -> R | None:
        """Return it."""
        documents: dict[tuple[type[Record], str], Document] = {
            (ConfigMap, "settings"): {
                "data": {"mode": "fast", "a.b": "dotted"},
                "binaryData": {"raw": base64.b64encode(BYTES).decode()},
            },
            (Secret, "keys"): {"data": {"token": base64.b64encode(b"s3cret").decode()}},
        }
        found = documents.get((record, name))
        return (
            None
            if found is None or namespace != "ns"
            else records.decode(record, {"metadata": {"name": name}, **found})
        )

    def list(self, *_: object, **__: object) -> Sequence[Record]:
        """Return nothing."""
        return ()


def givens(*pod_volumes: Document, **spec: Json) -> Givens:
    """Return what a pod may refer to."""
    pod = records.decode(
        Pod,
        {
            "metadata": {
                "name": "p-0",
                "namespace": "ns",
                "uid": "u",
                "labels": {"b": "2", "a": "1"},
                "annotations": {"note": 'say "hi"'},
            },
            "spec": {
                "containers": [{"name": "main"}, {"name": "other"}],
                "volumes": [*pod_volumes],
                "serviceAccountName": "robot",
                **spec,
            },
        },
    )
    machine = Machine(node="local", ip="127.0.0.1", allocatable={"cpu": "8", "memory": "16Gi"})
    return Givens(pod, "127.130.0.9", machine, cast("Reader", Shelf()))


def variables(*env: Document, **container: Json) -> dict[str, str]:
    """Return the environment of a container."""
    return environment.environment({"name": "main", "env": [*env], **container}, givens())


def reference(called: str, kind: str, **of: Json) -> Document:
    """Return a variable that refers to something."""
    return {"name": called, "valueFrom": {kind: {**of}}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p-0"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u"),
        ("metadata.labels['a']", "1"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", 'say "hi"'),
        ("spec.nodeName", "local"),
        ("spec.serviceAccountName", "robot"),
        ("status.hostIP", "127.0.0.1"),
        ("status.podIP", "127.130.0.9"),
        ("status.podIPs", "127.130.0.9"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    """Each field Kubernetes offers."""
    assert variables(reference("X", "fieldRef", fieldPath=path)) == {"X": value}


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", "1", "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.memory", "1Mi", "100"),
        ("limits.memory", "1Gi", "16"),
        ("requests.cpu", "0", "0"),
    ],
)
def test_resources_of_the_container(resource: str, divisor: str, value: str) -> None:
    """Rounded up; a limit that is not set is what the node has."""
    resources: Document = {"limits": {"cpu": "1500m"}, "requests": {"memory": "100Mi"}}
    item = reference("X", "resourceFieldRef", resource=resource, divisor=divisor)
    assert variables(item, resources=resources) == {"X": value}


def test_entries_of_config_maps_and_secrets() -> None:
    """One by one, and all of them with a prefix; optional ones may be absent."""
    assert variables(
        reference("MODE", "configMapKeyRef", name="settings", key="mode"),
        reference("TOKEN", "secretKeyRef", name="keys", key="token"),
        reference("NONE", "secretKeyRef", name="keys", key="none", optional=True),
        reference("NO", "configMapKeyRef", name="no", key="none", optional=True),
    ) == {"MODE": "fast", "TOKEN": "s3cret"}
    sources: list[Json] = [
        {"prefix": "K_", "secretRef": {"name": "keys"}},
        {"configMapRef": {"name": "absent", "optional": True}},
    ]
    assert variables({"name": "K_token", "value": "own"}, envFrom=sources) == {"K_token": "own"}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (reference("X", "configMapKeyRef", name="no", key="k"), 'configmap "no" not found'),
        (reference("X", "secretKeyRef", name="no", key="k"), 'secret "no" not found'),
        (
            reference("X", "secretKeyRef", name="keys", key="k"),
            "couldn't find key k in Secret ns/keys",
        ),
        (
            reference("X", "configMapKeyRef", name="settings", key="raw"),
            "variable X is not text: mount it as a volume instead",
        ),
        (reference("X", "fieldRef", fieldPath="spec.none"), 'fieldRef "spec.none" is not known'),
        (
            reference("X", "resourceFieldRef", resource="limits.cpu", containerName="none"),
            'resourceFieldRef names container "none", which the pod has not',
        ),
    ],
)
def test_what_is_missing_is_named(item: Document, message: str) -> None:
    """In the words kubectl users know, where they know some."""
    with pytest.raises(Lacking) as caught:
        variables(item)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(A)/b", "1/b"),
        ("$$(A)", "$(A)"),
        ("$(NONE)", "$(NONE)"),
        ("$A $( $", "$A $( $"),
        ("$$$(A)", "$1"),
    ],
)
def test_references_are_replaced(text: str, value: str) -> None:
    """As Kubernetes does; what is not there stays as it stands."""
    assert environment.expanded(text, {"A": "1"}) == value


@pytest.mark.law
@given(st.text(alphabet="$()AB "), st.dictionaries(st.sampled_from("AB"), st.just("v")))
def test_replacing_never_fails_and_leaves_plain_text_alone(
    text: str, known: dict[str, str]
) -> None:
    """Totality."""
    made = environment.expanded(text, known)
    if "$" not in text:
        assert made == text


def plan(container: Document, files: Sequence[Path] = ()) -> environment.ContainerPlan:
    """Return how a container is started."""
    return environment.container_plan({"name": "main", **container}, 3, givens(), Images(files))


def test_a_plan_says_all_that_is_needed() -> None:
    """Command and args expanded, mounts, ports, devices, memory."""
    made = plan(
        {
            "command": ["serve", "$(WHO)"],
            "args": ["--token=$(TOKEN)"],
            "workingDir": "/srv",
            "env": [
                reference("WHO", "fieldRef", fieldPath="metadata.name"),
                reference("TOKEN", "secretKeyRef", name="keys", key="token"),
            ],
            "volumeMounts": [
                {"name": "v", "mountPath": "/v", "readOnly": True, "subPathExpr": "x/$(WHO)"}
            ],
            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
            "resources": {"limits": {"nvidia.com/gpu": "2", "memory": "1Gi", "cpu": "1"}},
            "lifecycle": {"stopSignal": "SIGINT"},
        }
    )
    assert made.command == ("serve", "p-0", "--token=s3cret")
    assert (made.attempt, made.working_directory, made.ports) == (3, "/srv", (80,))
    assert made.mounts == (Mount(volume="v", path="/v", sub_path="x/p-0", read_only=True),)
    assert (made.devices, made.memory_bytes) == ({"nvidia.com/gpu": 2}, 1 << 30)
    assert made.stop_signal == 2


def test_an_image_alone_is_no_command() -> None:
    """It says what to do."""
    with pytest.raises(Lacking) as caught:
        plan({"image": "vllm/vllm-openai:v1"})
    assert caught.value.reason == "NoCommand"
    assert 'give it a "command", or map image "vllm/vllm-openai:v1"' in str(caught.value)


def test_a_settings_file_gives_an_image_a_command(tmp_path: Path) -> None:
    """By whole name or without the tag; the later file wins; args stay the container's own."""
    first, second = tmp_path / "one.toml", tmp_path / "two.toml"
    first.write_text('[images]\n"a/b" = ["one"]\n"c:1" = ["see"]\n')
    second.write_text('[images]\n"a/b" = ["two", "$(X)"]\n')
    files = [first, second, tmp_path / "absent.toml"]
    env: list[Json] = [{"name": "X", "value": "y"}]
    assert plan({"image": "a/b:9", "args": ["z"], "env": env}, files).command == ("two", "y", "z")
    assert plan({"image": "c:1"}, files).command == ("see",)
    with pytest.raises(Lacking):
        plan({"image": "c:2"}, files)
    assert images.repository("host:5000/a/b:tag@sha256:0") == "host:5000/a/b"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[images", "cannot be read"),
        ("images = 1", "images must be a table"),
        ('[images]\n"x" = "run"', 'images."x" must be a list of words'),
    ],
)
def test_a_broken_settings_file_is_told(tmp_path: Path, text: str, fault: str) -> None:
    """Where it would have been needed."""
    file = tmp_path / "spinney.toml"
    file.write_text(text)
    with pytest.raises(Lacking, match=fault):
        plan({"image": "x"}, [file])


def test_a_probe_nobody_does_is_refused() -> None:
    """Rather than never done."""
    with pytest.raises(Lacking, match="livenessProbe asks for grpc"):
        plan({"command": ["x"], "livenessProbe": {"grpc": {"port": 1}}})


def held(*pod_volumes: Document) -> dict[str, volumes.VolumeContent]:
    """Return what volumes hold."""
    return volumes.contents(givens(*pod_volumes))


def test_volumes_hold_what_they_refer_to(tmp_path: Path) -> None:
    """All kinds a local node has."""
    found = held(
        {"name": "empty", "emptyDir": {"medium": "Memory"}},
        {"name": "map", "configMap": {"name": "settings", "defaultMode": 0o600}},
        {
            "name": "some",
            "secret": {
                "secretName": "keys",
                "items": [{"key": "token", "path": "x/t", "mode": 0o400}],
            },
        },
        {
            "name": "own",
            "downwardAPI": {
                "items": [
                    {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                    {
                        "path": "cpu",
                        "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"},
                    },
                ]
            },
        },
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"configMap": {"name": "settings", "items": [{"key": "mode", "path": "m"}]}},
                    {"secret": {"name": "keys"}},
                    {"configMap": {"name": "absent", "optional": True}},
                ]
            },
        },
        {"name": "host", "hostPath": {"path": str(tmp_path / "d"), "type": "DirectoryOrCreate"}},
    )
    assert found["empty"].in_memory
    assert found["map"].files == {"mode": b"fast", "a.b": b"dotted", "raw": BYTES}
    assert (found["map"].mode, found["map"].read_only) == (0o600, True)
    assert (found["some"].files, found["some"].modes) == ({"x/t": b"s3cret"}, {"x/t": 0o400})
    assert found["own"].files == {"labels": b'a="1"\nb="2"', "cpu": b"8"}
    assert found["all"].files == {"m": b"fast", "token": b"s3cret"}
    assert found["host"].path == str(tmp_path / "d")
    assert (tmp_path / "d").is_dir()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMap": {"name": "no"}}, 'volume "v": configmap "no" not found'),
        ({"secret": {"secretName": "no"}}, 'volume "v": secret "no" not found'),
        (
            {"persistentVolumeClaim": {"claimName": "c"}},
            'volume "v": persistentVolumeClaim is not supported on a local node: use emptyDir',
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            'volume "v": a projected serviceAccountToken is not supported',
        ),
        ({"hostPath": {"path": "/no/such/path"}}, 'volume "v": hostPath /no/such/path does not'),
        ({"hostPath": {"path": "/dev/null", "type": "File"}}, 'volume "v": hostPath type check'),
    ],
)
def test_a_volume_that_cannot_be_had_is_named(source: Document, message: str) -> None:
    """With what to use instead."""
    with pytest.raises(Lacking) as caught:
        held({"name": "v", **source})
    assert str(caught.value).startswith(message)


def test_volumes_say_what_they_show() -> None:
    """So that a change of it is shown too."""
    shown = volumes.references(
        (
            {"name": "a", "configMap": {"name": "m"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "s"}}]}},
            {"name": "c", "secret": {"secretName": "t"}},
        )
    )
    assert shown == {("ConfigMap", "m"), ("Secret", "s"), ("Secret", "t")}
