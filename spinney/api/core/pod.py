"""Pod, as Spinney reads one. The document holds more, and none of it is lost."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from spinney.api.core import pod_defaults, pod_rules
from spinney.api.core.builtin import built_in
from spinney.api.kinds import Names
from spinney.meta.conditions import Condition
from spinney.meta.documents import Document
from spinney.meta.metadata import ObjectMeta
from spinney.meta.records import Field, Record


class ContainerStateTerminated(Record):
    """How a container ended."""

    exit_code: Annotated[int, Field("The exit code; 128 + n for signal n.")] = 0
    signal: Annotated[int | None, Field("The signal that ended it.")] = None
    reason: Annotated[str, Field("`Completed`, `Error`, `OOMKilled` …")] = ""
    message: Annotated[str, Field("More about it.")] = ""
    started_at: Annotated[datetime | None, Field("When it began.")] = None
    finished_at: Annotated[datetime | None, Field("When it ended.")] = None


class ContainerStateRunning(Record):
    """That a container runs."""

    started_at: Annotated[datetime | None, Field("Since when.")] = None


class ContainerStateWaiting(Record):
    """Why a container does not run yet."""

    reason: Annotated[str, Field("`ContainerCreating`, `CrashLoopBackOff` …")] = ""
    message: Annotated[str, Field("More about it.")] = ""


class PodContainerState(Record):
    """What a container is doing; one of the three."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Record):
    """What is observed of one container."""

    name: str
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: PodContainerState = PodContainerState()
    last_state: PodContainerState = PodContainerState()


class PodSchedulingGate(Record):
    """Something that holds a pod back from being placed."""

    name: str


class PodReadinessGate(Record):
    """A condition of somebody else that must hold before a pod is ready."""

    condition_type: str


class PodSpec(Record):
    """What a pod should be; containers and volumes are left as they stand."""

    containers: tuple[Document, ...] = ()
    init_containers: tuple[Document, ...] = ()
    volumes: tuple[Document, ...] = ()
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    restart_policy: str = "Always"
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str = "PreemptLowerPriority"
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    node_selector: Mapping[str, str] = {}
    affinity: Document | None = None
    tolerations: tuple[Document, ...] = ()
    resources: Document | None = None
    overhead: Document | None = None
    resource_claims: tuple[Document, ...] = ()


class PodStatus(Record):
    """What is observed of a pod."""

    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    reason: str = ""
    message: str = ""
    host_ip: str = msgspec.field(name="hostIP", default="")
    pod_ip: str = msgspec.field(name="podIP", default="")
    start_time: datetime | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Record):
    """Containers that run together on one node."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


KIND = built_in(
    Names(
        group="",
        version="v1",
        kind="Pod",
        plural="pods",
        singular="pod",
        short=("po",),
        categories=("all",),
    ),
    Pod,
    finer=pod_defaults.FINER,
    has_status=True,
    default=pod_defaults.default,
    default_status=pod_defaults.default_status,
    rules=pod_rules.rules,
    births=pod_rules.births,
    changes=pod_rules.changes,
    selectable=(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
)
