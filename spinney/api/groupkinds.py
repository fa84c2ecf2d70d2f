"""The kinds that code speaks of by name, each written once."""

from __future__ import annotations

from typing import Final

from spinney.meta.references import GroupKind

_GROVE = "grove.io"
_RBAC = "rbac.authorization.k8s.io"

SET: Final = GroupKind(group=_GROVE, kind="PodCliqueSet")
SCALING_GROUP: Final = GroupKind(group=_GROVE, kind="PodCliqueScalingGroup")
CLIQUE: Final = GroupKind(group=_GROVE, kind="PodClique")
TOPOLOGY: Final = GroupKind(group=_GROVE, kind="ClusterTopologyBinding")
GANG: Final = GroupKind(group="scheduler.grove.io", kind="PodGang")

POD: Final = GroupKind(group="", kind="Pod")
NODE: Final = GroupKind(group="", kind="Node")
NAMESPACE: Final = GroupKind(group="", kind="Namespace")
SERVICE: Final = GroupKind(group="", kind="Service")
ENDPOINTS: Final = GroupKind(group="", kind="Endpoints")
ENDPOINT_SLICE: Final = GroupKind(group="discovery.k8s.io", kind="EndpointSlice")
SERVICE_ACCOUNT: Final = GroupKind(group="", kind="ServiceAccount")
SECRET: Final = GroupKind(group="", kind="Secret")
EVENT: Final = GroupKind(group="", kind="Event")
ROLE: Final = GroupKind(group=_RBAC, kind="Role")
ROLE_BINDING: Final = GroupKind(group=_RBAC, kind="RoleBinding")
AUTOSCALER: Final = GroupKind(group="autoscaling", kind="HorizontalPodAutoscaler")
REVISION: Final = GroupKind(group="apps", kind="ControllerRevision")
LEASE: Final = GroupKind(group="coordination.k8s.io", kind="Lease")
CLAIM: Final = GroupKind(group="resource.k8s.io", kind="ResourceClaim")
CLAIM_TEMPLATE: Final = GroupKind(group="resource.k8s.io", kind="ResourceClaimTemplate")
DISRUPTION_BUDGET: Final = GroupKind(group="policy", kind="PodDisruptionBudget")
