"""Situations: what people ask `spinney why` and `spinney tree` about, each a world of documents.

Made by the real decisions over the world of these tests; what nodes, schedulers and people do is
said by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from spinney.api import groupkinds
from spinney.decisions.causes.scenes import Scene
from spinney.meta.documents import Document, Json, list_at, object_at, string_at, with_value
from spinney.meta.references import Ref
from spinney.meta.times import format_time
from spinney.testing import build
from tests.decisions.worlds import World


def serving() -> build.PodCliqueSetBuilder:
    """Return a disaggregated system: a router, and two groups of a leader with workers."""
    return (
        build.podcliqueset("chat")
        .with_clique("router")
        .with_clique("prefill-leader", starts_after=("router",))
        .with_clique("prefill-worker", replicas=3, starts_after=("prefill-leader",))
        .with_clique("decode", replicas=4, min_available=2)
        .with_group("prefill", "prefill-leader", "prefill-worker", replicas=2, min_available=1)
        .with_template("cliqueStartupType", "CliqueStartupTypeExplicit")
        .with_("metadata.namespace", "default")
    )


class Told(World):
    """A world with nodes, in which things can be said of pods."""

    def node(self, name: str, *, ready: bool = True, cordoned: bool = False, why: str = "") -> None:
        """Let there be a node."""
        condition: Document = {
            "type": "Ready",
            "status": "True" if ready else "Unknown",
            "reason": "AgentReady" if ready else "NodeStatusUnknown",
            "message": why or "the agent answers",
            "lastTransitionTime": format_time(self.now),
        }
        spec: Document = {"unschedulable": True} if cordoned else {}
        metadata: Document = {"name": name, "uid": f"uid-{name}"}
        ref = Ref(kind=groupkinds.NODE, namespace="", name=name)
        self.documents[ref] = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": metadata,
            "spec": spec,
            "status": {"conditions": [condition]},
        }

    def run(self, *names: str, node: str = "node-1", ready: bool = True) -> None:
        """Let pods run: those of these names, else all that may."""
        for ref in list(self.pods()):
            gates = list_at(self.documents[ref], ["spec", "schedulingGates"])
            if not gates and (not names or ref.name in names):
                self.status(ref.name, node=node, ready=ready)
        self.settle()

    def status(
        self,
        name: str,
        *,
        node: str = "node-1",
        ready: bool = False,
        state: Document | None = None,
        last: Document | None = None,
        restarts: int = 0,
        phase: str = "Running",
        started: bool = True,
    ) -> None:
        """Say what a pod's container does."""
        ref = Ref(kind=groupkinds.POD, namespace="default", name=name)
        now = format_time(self.now)
        said: list[Json] = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
            {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now},
        ]
        container: Document = {
            "name": "main",
            "ready": ready,
            "started": started,
            "restartCount": restarts,
            "state": state or {"running": {"startedAt": now}},
            **({"lastState": last} if last else {}),
        }
        document = with_value(self.documents[ref], ["spec", "nodeName"], node)
        told: Document = {"phase": phase, "conditions": said, "containerStatuses": [container]}
        self.version += 1
        self._put(ref, with_value(document, ["status"], told))

    def refuse(self, name: str, message: str) -> None:
        """Let the scheduler say why a pod has no node."""
        ref = Ref(kind=groupkinds.POD, namespace="default", name=name)
        condition: Document = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
            "lastTransitionTime": format_time(self.now),
        }
        self._put(ref, with_value(self.documents[ref], ["status", "conditions"], [condition]))

    def warn(self, kind: str, name: str, reason: str, message: str) -> None:
        """Let there be an event."""
        about: Document = {"kind": kind, "namespace": "default", "name": name}
        self.version += 1
        ref = Ref(kind=groupkinds.EVENT, namespace="default", name=f"event-{self.version}")
        self.documents[ref] = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": ref.name, "namespace": "default"},
            "involvedObject": about,
            "type": "Warning",
            "reason": reason,
            "message": message,
            "lastTimestamp": format_time(self.now),
        }

    def put(self, kind: str, name: str, path: list[str], value: Json) -> None:
        """Set a field of an object, past all controllers."""
        for ref in list(self.documents):
            if (ref.kind.kind, ref.name) == (kind, name):
                self._put(ref, with_value(self.documents[ref], path, value))

    def complain(self, kind: str, name: str, condition: Document) -> None:
        """Add a condition to an object, past all controllers."""
        for ref, document in list(self.documents.items()):
            if (ref.kind.kind, ref.name) == (kind, name):
                before = list_at(document, ["status", "conditions"])
                kept = [
                    each for each in before if object_at(each, []).get("type") != condition["type"]
                ]
                self._put(ref, with_value(document, ["status", "conditions"], [*kept, condition]))

    def scene(self) -> Scene:
        """Return it as it is told of."""
        return Scene(self.documents.values(), self.now)


def _applied(made: build.PodCliqueSetBuilder) -> Told:
    world = Told()
    world.node("node-1")
    world.apply(made.document())
    world.settle()
    world.wait(timedelta(seconds=100))
    return world


def all_is_well() -> Told:
    """Everything runs."""
    world = _applied(serving())
    for _ in range(3):
        world.run()
    return world


def no_nodes() -> Told:
    """There is nothing to run pods."""
    world = _applied(serving())
    world.documents = {
        ref: document for ref, document in world.documents.items() if ref.kind != groupkinds.NODE
    }
    return world


def cordoned() -> Told:
    """Every node is being worked on."""
    world = _applied(serving())
    world.node("node-1", cordoned=True)
    world.node("node-2", ready=False, why="the agent has not answered since 12:00:31.")
    return world


def too_small() -> Told:
    """The scheduler finds no room for the base gang."""
    world = _applied(serving())
    for ref in list(world.pods()):
        world.refuse(
            ref.name,
            "gang chat-0 does not fit: chat-0-prefill-0-prefill-worker needs 3 pods with "
            "nvidia.com/gpu 8, of 1 node 1 has too few nvidia.com/gpu; 2 more such nodes would do.",
        )
    return world


def scaled_gang_pending() -> Told:
    """The system serves, and its second prefill instance has no room."""
    world = all_is_well()
    for ref in list(world.pods()):
        if ref.name.startswith("chat-0-prefill-1"):
            document = world.documents[ref]
            pending: Document = {"phase": "Pending", "conditions": []}
            spec = {k: v for k, v in object_at(document, ["spec"]).items() if k != "nodeName"}
            world._put(ref, {**document, "spec": spec, "status": pending})
            world.refuse(ref.name, "1 node: too few nvidia.com/gpu.")
    world.put(
        "PodGang",
        "chat-0-prefill-0",
        ["status", "conditions"],
        [{"type": "Initialized", "status": "True", "reason": "PodGangPodsCreated"}],
    )
    world.put("PodGang", "chat-0-prefill-0", ["status", "incarnation"], 7)
    world.put("PodGang", "chat-0-prefill-0", ["status", "phase"], "Pending")
    world.settle()
    return world


def no_scheduler() -> Told:
    """Nobody places pods."""
    return _applied(serving())


def gang_not_whole() -> Told:
    """Pods of a clique are refused by a quota."""
    world = _applied(serving())
    for ref in list(world.pods()):
        if ref.name == "chat-0-decode-3":
            del world.documents[ref]
    made = {"type": "Initialized", "status": "False", "reason": "PodGangPodsCreationPending"}
    message = "PodClique chat-0-decode has 3 of 4 pods"
    world.put("PodGang", "chat-0", ["status", "conditions"], [{**made, "message": message}])
    for ref in list(world.pods()):
        gate: Json = [{"name": "grove.io/podgang-pending-creation"}]
        world.put("Pod", ref.name, ["spec", "schedulingGates"], gate)
    world.complain(
        "PodClique",
        "chat-0-decode",
        {
            "type": "Stalled",
            "status": "True",
            "reason": "Forbidden",
            "message": 'pods "chat-0-decode-3" is forbidden: exceeded quota: gpus',
            "lastTransitionTime": format_time(world.now),
        },
    )
    return world


def crash_loop() -> Told:
    """The router ends again and again."""
    world = all_is_well()
    ended: Document = {
        "exitCode": 1,
        "reason": "Error",
        "message": "ValueError: no such model: llama-9",
        "finishedAt": format_time(world.now),
    }
    waiting: Document = {"reason": "CrashLoopBackOff", "message": "back-off 40s"}
    world.status(
        "chat-0-router-0", state={"waiting": waiting}, last={"terminated": ended}, restarts=4
    )
    world.settle()
    return world


def start_up_order() -> Told:
    """The leader is not ready, so its workers are held back."""
    world = _applied(serving())
    world.run("chat-0-router-0")
    world.run(ready=False)
    waiting: Document = {"waiting": {"reason": "PodInitializing"}}
    for ref in list(world.pods()):
        if "worker" in ref.name and string_at(world.documents[ref], ["spec", "nodeName"]):
            world.status(ref.name, state=waiting, phase="Pending", started=False)
        elif "router" in ref.name or "decode" in ref.name:
            world.status(ref.name, ready=True)
    leader = "chat-0-prefill-0-prefill-leader-0"
    world.warn("Pod", leader, "Unhealthy", "Readiness probe failed: GET :8000/ready answered 503")
    world.settle()
    return world


def no_command() -> Told:
    """An image is named, and no command."""
    world = _applied(serving())
    waiting: Document = {
        "reason": "NoCommand",
        "message": "image example/main:1 has no command here: give the container a command, or "
        "map the image to one in spinney.toml",
    }
    for ref in list(world.pods()):
        if not list_at(world.documents[ref], ["spec", "schedulingGates"]):
            world.status(ref.name, state={"waiting": waiting}, phase="Pending", started=False)
    world.settle()
    return world


def config_missing() -> Told:
    """A ConfigMap that a container takes its environment from is not there."""
    world = all_is_well()
    waiting: Document = {
        "reason": "CreateContainerConfigError",
        "message": 'configmap "models" not found',
    }
    world.status("chat-0-decode-2", state={"waiting": waiting}, phase="Pending", started=False)
    world.settle()
    return world


def node_lost() -> Told:
    """The node of two pods does not answer."""
    world = all_is_well()
    world.node("node-2", ready=False, why="the agent has not answered for 40 s")
    for name in ("chat-0-decode-0", "chat-0-decode-1", "chat-0-decode-3"):
        world.status(name, node="node-2")
    world.wait(timedelta(seconds=70))
    world.settle()
    return world


def name_conflict() -> Told:
    """Somebody's own object has a name the set needs."""
    world = Told()
    world.node("node-1")
    lone: Document = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": "chat-0-router", "namespace": "default"},
        "spec": {
            "roleName": "router",
            "replicas": 1,
            "minAvailable": 1,
            "podSpec": {"containers": [{"name": "main", "image": "example/main:1"}]},
        },
    }
    world.apply(lone)
    world.apply(serving().document())
    world.settle()
    return world


def held_deletion() -> Told:
    """A deleted set is held by somebody's finalizer."""
    world = all_is_well()
    for ref in world.names(groupkinds.SET):
        world.put("PodCliqueSet", ref, ["metadata", "finalizers"], ["example.com/backup"])
        world.put("PodCliqueSet", ref, ["metadata", "deletionTimestamp"], format_time(world.now))
    return world


def pods_end() -> Told:
    """A set is deleted, and its pods do not end."""
    world = all_is_well()
    world.delete(Ref(kind=groupkinds.SET, namespace="default", name="chat"))
    world.settle()
    for ref in list(world.pods()):
        world.put("Pod", ref.name, ["metadata", "deletionGracePeriodSeconds"], 30)
    world.wait(timedelta(seconds=45))
    return world


def topology_missing() -> Told:
    """The set names a topology that is not there, and is not placed."""
    wanted: Document = {"topologyName": "racks", "pack": {"required": "rack"}}
    return _applied(serving().with_template("topologyConstraint", wanted))


def idle() -> Told:
    """The set is scaled to 0."""
    return _applied(serving().with_replicas(0))


def nobody_looks() -> Told:
    """No controller runs."""
    world = Told()
    world.apply(serving().document())
    world.wait(timedelta(seconds=12))
    return world


def paused() -> Told:
    """Its update is paused."""
    world = all_is_well()
    world.put("PodCliqueSet", "chat", ["spec", "updateStrategy"], {"paused": True})
    progress: Document = {"updateStartedAt": format_time(world.now)}
    world.put("PodCliqueSet", "chat", ["status", "rollingUpdateProgress"], progress)
    return world


def breached() -> Told:
    """Half of the decode pods are gone after all was well."""
    world = all_is_well()
    ended: Document = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    for name in ("chat-0-decode-0", "chat-0-decode-1", "chat-0-decode-2"):
        world.status(name, state=ended)
    world.settle()
    world.put("PodCliqueSet", "chat", ["spec", "template", "terminationDelay"], "4m")
    world.wait(timedelta(seconds=48))
    return world


SITUATIONS: Mapping[str, Callable[[], Told]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        all_is_well,
        no_nodes,
        cordoned,
        too_small,
        scaled_gang_pending,
        no_scheduler,
        gang_not_whole,
        crash_loop,
        start_up_order,
        no_command,
        config_missing,
        node_lost,
        name_conflict,
        held_deletion,
        pods_end,
        topology_missing,
        idle,
        nobody_looks,
        paused,
        breached,
    )
}
