"""The rules of a PodCliqueSet: each as it is kept, and as it is broken."""

from __future__ import annotations

import pytest

from spinney.api import kinds, podcliqueset
from spinney.api.surroundings import Surroundings
from spinney.meta import metadata
from spinney.meta.documents import Document, Json, value_at
from spinney.meta.durations import Duration
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of, warned_of

KIND = podcliqueset.KIND

BASE = (
    build.podcliqueset("chat")
    .with_clique("router", replicas=2, min_available=1)
    .with_clique("leader")
    .with_clique("worker", replicas=3)
    .with_group("decode", "leader", "worker", replicas=2, min_available=1)
    .document()
)
C = "spec.template.cliques"
G = "spec.template.podCliqueScalingGroups"
S = "spec.template"

POD = {"containers": [{"name": "main", "image": "example/main:1"}]}
SHARED = {
    "name": "link",
    "templateSpec": {"spec": {"devices": {"requests": [{"name": "a"}]}}},
}


SUBDOMAIN = metadata.SUBDOMAIN_RULE
SHARE = 'must be an integer or a percentage such as "25%"'


def clique(name: str, **spec: object) -> Document:
    made: Document = {"name": name, "spec": {"roleName": name, "podSpec": POD, **spec}}  # type: ignore[dict-item]
    return made


SET_RULES = (
    Case(
        "names are DNS subdomains",
        good=(
            {"metadata.name": "chat.v2"},
            {"metadata.name": ABSENT, "metadata.generateName": "c-"},
        ),
        bad=(
            (
                {"metadata.name": "Chat"},
                (
                    'metadata.name: Invalid value: "Chat": a lowercase RFC 1123 subdomain must '
                    "consist of lower case alphanumeric characters, '-' or '.', and must start "
                    "and end with an alphanumeric character (e.g. 'example.com', regex used for "
                    "validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                ),
            ),
            (
                {"metadata.name": ABSENT},
                ("metadata.name: Required value: name or generateName is required",),
            ),
        ),
    ),
    Case(
        "replicas are not negative",
        good=({"spec.replicas": 0}, {"spec.replicas": 500}),
        bad=(
            (
                {"spec.replicas": -1},
                ("spec.replicas: Invalid value: -1: must be greater than or equal to 0",),
            ),
            ({"spec.replicas": "2"}, ('spec.replicas: Invalid value: "2": must be an integer',)),
        ),
    ),
    Case(
        "start-up is of one of three types",
        good=tuple(
            {f"{S}.cliqueStartupType": f"CliqueStartupType{kind}"}
            for kind in ("AnyOrder", "InOrder", "Explicit")
        ),
        bad=(
            (
                {f"{S}.cliqueStartupType": "InOrder"},
                (
                    f'{S}.cliqueStartupType: Unsupported value: "InOrder": supported values: '
                    '"CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", '
                    '"CliqueStartupTypeExplicit"',
                ),
            ),
        ),
    ),
    Case(
        "the update strategy is one of three",
        good=tuple(
            {"spec.updateStrategy.type": kind}
            for kind in ("RollingRecreate", "OnDelete", "Coherent")
        ),
        bad=(
            (
                {"spec.updateStrategy.type": "Recreate"},
                (
                    'spec.updateStrategy.type: Unsupported value: "Recreate": supported values: '
                    '"RollingRecreate", "OnDelete", "Coherent"',
                ),
            ),
        ),
    ),
    Case(
        "at most so many may be unavailable in an update",
        good=(
            {"spec.updateStrategy.rollingRecreate.maxUnavailable": 2},
            {"spec.updateStrategy.rollingRecreate.maxUnavailable": "100%"},
        ),
        bad=(
            (
                {"spec.updateStrategy.rollingRecreate.maxUnavailable": 0},
                (
                    "spec.updateStrategy.rollingRecreate.maxUnavailable: Invalid value: 0: "
                    "must be at least 1, or at least 1%",
                ),
            ),
            (
                {"spec.updateStrategy.rollingRecreate.maxUnavailable": "some"},
                (
                    'spec.updateStrategy.rollingRecreate.maxUnavailable: Invalid value: "some": '
                    + SHARE,
                ),
            ),
            (
                {"spec.updateStrategy.rollingRecreate.maxUnavailable": "101%"},
                (
                    'spec.updateStrategy.rollingRecreate.maxUnavailable: Invalid value: "101%": '
                    "must be at most 100%",
                ),
            ),
            (
                {"spec.updateStrategy.progressDeadlineSeconds": 0},
                (
                    "spec.updateStrategy.progressDeadlineSeconds: Invalid value: 0: "
                    "must be greater than or equal to 1",
                ),
            ),
        ),
    ),
)

CLIQUE_RULES = (
    Case(
        "there is a clique",
        bad=(
            (
                {C: [], G: []},
                (f"{C}: Required value: must have at least one clique",),
            ),
            ({C: ABSENT, G: []}, (f"{C}: Required value",)),
        ),
    ),
    Case(
        "a clique has a name that is a DNS subdomain",
        good=({f"{C}[0].name": "router.v2"}, {f"{C}[0].name": "0"}),
        bad=(
            (
                {f"{C}[0].name": "  "},
                (f"{C}[0].name: Required value: a name must be given",),
            ),
            ({f"{C}[0].name": ABSENT}, (f"{C}[0].name: Required value",)),
            ({f"{C}[0].name": "Router"}, (f'{C}[0].name: Invalid value: "Router": {SUBDOMAIN}',)),
        ),
    ),
    Case(
        "names within a pod's name have 45 characters together",
        good=(
            {f"{C}[0].name": "r" * 41},
            {f"{C}[1].name": "l" * 35, f"{G}[0].cliqueNames[0]": "l" * 35},
        ),
        bad=(
            (
                {f"{C}[0].name": "r" * 42},
                (
                    'metadata.name: Invalid value: "chat": the names that make up a pod\'s name '
                    "must have at most 45 characters together, found 46: "
                    f"metadata.name + {C}[0].name",
                    f'{C}[0].name: Invalid value: "{"r" * 42}": the names that make up a pod\'s '
                    "name must have at most 45 characters together, found 46: "
                    f"metadata.name + {C}[0].name",
                ),
            ),
            (
                {f"{C}[1].name": "l" * 36, f"{G}[0].cliqueNames[0]": "l" * 36},
                tuple(
                    f'{path}: Invalid value: "{value}": the names that make up a pod\'s name must '
                    "have at most 45 characters together, found 46: "
                    f"metadata.name + {G}[0].name + {G}[0].cliqueNames[0]"
                    for path, value in (
                        ("metadata.name", "chat"),
                        (f"{G}[0].name", "decode"),
                        (f"{G}[0].cliqueNames[0]", "l" * 36),
                    )
                ),
            ),
        ),
    ),
    Case(
        "labels and annotations of a clique are labels and annotations",
        good=({f"{C}[0].labels": {"a.b/c": "d"}}, {f"{C}[0].annotations": {"a": "b c"}}),
        bad=(
            (
                {f"{C}[0].labels": {"a": "b c"}},
                (f'{C}[0].labels: Invalid value: "b c": {metadata.LABEL_VALUE_RULE}',),
            ),
            (
                {f"{C}[0].labels": {"a b": "c"}},
                (f'{C}[0].labels: Invalid value: "a b": {metadata.NAME_PART_RULE}',),
            ),
            (
                {f"{G}[0].annotations": {"a b": "c"}},
                (f'{G}[0].annotations: Invalid value: "a b": {metadata.NAME_PART_RULE}',),
            ),
            (
                {f"{C}[0].annotations": {"a b": "c"}},
                (
                    f'{C}[0].annotations: Invalid value: "a b": name part must consist of '
                    "alphanumeric characters, '-', '_' or '.', and must start and end with an "
                    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
                    "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                ),
            ),
        ),
    ),
    Case(
        "clique names are unique",
        bad=(
            (
                {f"{C}[3]": clique("router", roleName="other")},  # type: ignore[dict-item]
                (f'{C}[3].name: Duplicate value: "router"',),
            ),
        ),
    ),
    Case(
        "roles are unique",
        bad=(
            (
                {f"{C}[1].spec.roleName": "router"},
                (
                    f'{C}[1].spec.roleName: Duplicate value: "router": '
                    "roles are unique within a set",
                ),
            ),
            (
                {f"{C}[1].spec.roleName": ""},
                (f"{C}[1].spec.roleName: Required value: name the role of these pods",),
            ),
        ),
    ),
    Case(
        "a clique has pods",
        good=({f"{C}[0].spec.replicas": 0, f"{C}[0].spec.minAvailable": ABSENT},),
        bad=(
            (
                {f"{C}[0].spec.replicas": -2},
                (f"{C}[0].spec.replicas: Invalid value: -2: must be greater than 0",),
            ),
        ),
    ),
    Case(
        "minAvailable lies between 1 and replicas",
        good=({f"{C}[0].spec.minAvailable": 2}, {f"{C}[0].spec.minAvailable": None}),
        bad=(
            (
                {f"{C}[0].spec.minAvailable": 0},
                (f"{C}[0].spec.minAvailable: Invalid value: 0: must be greater than 0",),
            ),
            (
                {f"{C}[0].spec.minAvailable": 3},
                (
                    f"{C}[0].spec.minAvailable: Invalid value: 3: must be less than or equal to "
                    "replicas (2)",
                ),
            ),
        ),
    ),
    Case(
        "the autoscaler's bounds hold minAvailable and replicas",
        good=({f"{C}[0].spec.autoScalingConfig": {"maxReplicas": 2}},),
        bad=(
            (
                {
                    f"{C}[0].spec.minAvailable": 2,
                    f"{C}[0].spec.autoScalingConfig": {"minReplicas": 1, "maxReplicas": 4},
                },
                (
                    f"{C}[0].spec.autoScalingConfig.minReplicas: Invalid value: 1: must be "
                    "greater than or equal to minAvailable (2)",
                ),
            ),
            (
                {f"{C}[0].spec.autoScalingConfig": {"minReplicas": 3, "maxReplicas": 2}},
                (
                    f"{C}[0].spec.autoScalingConfig.maxReplicas: Invalid value: 2: must be "
                    "greater than or equal to minReplicas (3)",
                ),
            ),
            (
                {f"{C}[0].spec.autoScalingConfig": {"minReplicas": 1, "maxReplicas": 1}},
                (
                    f"{C}[0].spec.autoScalingConfig.maxReplicas: Invalid value: 1: must be "
                    "greater than or equal to replicas (2)",
                ),
            ),
            (
                {f"{C}[0].spec.autoScalingConfig": {}},
                (f"{C}[0].spec.autoScalingConfig.maxReplicas: Required value",),
            ),
        ),
    ),
    Case(
        "a set has one scheduler, and one that there is",
        good=(
            {f"{C}[{index}].spec.podSpec.schedulerName": "default-scheduler" for index in (0, 2)},
        ),
        bad=(
            (
                {f"{C}[1].spec.podSpec.schedulerName": "spinney-scheduler"},
                (
                    f'{C}[1].spec.podSpec.schedulerName: Invalid value: "spinney-scheduler": all '
                    "cliques of a set must have the same scheduler, the first has "
                    '"default-scheduler"',
                ),
            ),
            (
                {f"{C}[{index}].spec.podSpec.schedulerName": "mine" for index in (0, 1, 2)},
                (
                    f'{C}[0].spec.podSpec.schedulerName: Unsupported value: "mine": supported '
                    'values: "default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler", '
                    '"spinney-scheduler"',
                ),
            ),
        ),
    ),
    Case(
        "a pod spec leaves nodes to the scheduler",
        bad=(
            (
                {f"{C}[0].spec.podSpec.nodeName": "node-1"},
                (
                    f'{C}[0].spec.podSpec.nodeName: Invalid value: "node-1": must not be set: '
                    "the scheduler chooses nodes; use nodeSelector or affinity",
                ),
            ),
            (
                {f"{C}[0].spec.podSpec.topologySpreadConstraints": []},
                (
                    f"{C}[0].spec.podSpec.topologySpreadConstraints: Invalid value: []: must not "
                    "be set: use topologyConstraint of the clique",
                ),
            ),
        ),
    ),
    Case(
        "environment variables have names of their own",
        good=({f"{C}[0].spec.podSpec.containers[0].env": [{"name": "A.b-c_1"}]},),
        bad=(
            (
                {f"{C}[0].spec.podSpec.containers[0].env": [{"name": "1A"}]},
                (
                    f'{C}[0].spec.podSpec.containers[0].env[0].name: Invalid value: "1A": must '
                    "consist of letters, digits, '_', '-' or '.', and must not begin with a digit",
                ),
            ),
            (
                {
                    f"{C}[0].spec.podSpec.initContainers": [
                        {"name": "i", "env": [{"name": "A"}, {"name": "A"}]}
                    ]
                },
                (f'{C}[0].spec.podSpec.initContainers[0].env[1].name: Duplicate value: "A"',),
            ),
        ),
    ),
    Case(
        "a pod has containers, and only fields there are",
        bad=(
            (
                {f"{C}[0].spec.podSpec.containers": []},
                (
                    f"{C}[0].spec.podSpec.containers: Required value: "
                    "must have at least one container",
                ),
            ),
            (
                {f"{C}[0].spec.podSpec.containers[0].imagePullPolcy": "Always"},
                (
                    f"{C}[0].spec.podSpec.containers[0].imagePullPolcy: Unknown field: "
                    'did you mean "imagePullPolicy"?',
                ),
            ),
        ),
    ),
)

REQUIRED = Case(
    "what must be given is given",
    bad=tuple(
        ({path: ABSENT}, (f"{path}: Required value",))
        for path in (
            "spec.template",
            f"{C}[0].name",
            f"{C}[0].spec",
            f"{C}[0].spec.roleName",
            f"{C}[0].spec.podSpec",
            f"{C}[0].spec.podSpec.containers",
            f"{C}[0].spec.podSpec.containers[0].name",
            f"{G}[0].name",
            f"{G}[0].cliqueNames",
        )
    ),
)

GROUP_RULES = (
    Case(
        "a group has a name of its own, which is a DNS subdomain",
        good=({f"{G}[0].name": "decode.v1"},),
        bad=(
            ({f"{G}[0].name": ""}, (f"{G}[0].name: Required value: a name must be given",)),
            ({f"{G}[0].name": "Decode"}, (f'{G}[0].name: Invalid value: "Decode": {SUBDOMAIN}',)),
            (
                {f"{G}[1]": {"name": "decode", "cliqueNames": ["router"]}},
                (f'{G}[1].name: Duplicate value: "decode": groups of a set have different names',),
            ),
        ),
    ),
    Case(
        "a group is made of cliques of the set, each in one group at most",
        bad=(
            (
                {f"{G}[0].cliqueNames": []},
                (f"{G}[0].cliqueNames: Required value: must have at least one clique",),
            ),
            (
                {f"{G}[0].cliqueNames[2]": "nobody"},
                (
                    f'{G}[0].cliqueNames[2]: Invalid value: "nobody": '
                    "no clique of this name in the set",
                ),
            ),
            (
                {f"{G}[0].cliqueNames[2]": "leader"},
                (f'{G}[0].cliqueNames[2]: Duplicate value: "leader": already in group "decode"',),
            ),
            (
                {f"{G}[1]": {"name": "prefill", "cliqueNames": ["worker"]}},
                (f'{G}[1].cliqueNames[0]: Duplicate value: "worker": already in group "decode"',),
            ),
        ),
    ),
    Case(
        "a group's replicas are not negative, its minAvailable is at least 1 and at most these",
        good=({f"{G}[0].replicas": 0}, {f"{G}[0].minAvailable": 2}, {f"{G}[0].replicas": ABSENT}),
        bad=(
            (
                {f"{G}[0].replicas": -1},
                (f"{G}[0].replicas: Invalid value: -1: must be greater than or equal to 0",),
            ),
            (
                {f"{G}[0].minAvailable": 0},
                (f"{G}[0].minAvailable: Invalid value: 0: must be greater than 0",),
            ),
            (
                {f"{G}[0].replicas": 1, f"{G}[0].minAvailable": 2},
                (
                    f"{G}[0].minAvailable: Invalid value: 2: must be less than or equal to "
                    "replicas (1)",
                ),
            ),
            (
                {f"{G}[0].minAvailable": 3},
                (
                    f"{G}[0].minAvailable: Invalid value: 3: must be less than or equal to "
                    "replicas (2)",
                ),
            ),
        ),
    ),
    Case(
        "a group's autoscaler stays above minAvailable",
        good=({f"{G}[0].scaleConfig": {"minReplicas": 1, "maxReplicas": 1}},),
        bad=(
            (
                {
                    f"{G}[0].minAvailable": 2,
                    f"{G}[0].scaleConfig": {"minReplicas": 1, "maxReplicas": 4},
                },
                (
                    f"{G}[0].scaleConfig.minReplicas: Invalid value: 1: must be greater than or "
                    "equal to minAvailable (2)",
                ),
            ),
            (
                {f"{G}[0].scaleConfig": {"maxReplicas": 1}},
                (
                    f"{G}[0].scaleConfig.maxReplicas: Invalid value: 1: must be greater than or "
                    "equal to minReplicas (2)",
                ),
            ),
        ),
    ),
    Case(
        "a clique in a group is scaled with it",
        bad=(
            (
                {f"{C}[2].spec.autoScalingConfig": {"minReplicas": 3, "maxReplicas": 9}},
                (
                    f"{C}[2].spec.autoScalingConfig: Forbidden: a clique in a group is scaled "
                    "with its group: use the group's scaleConfig",
                ),
            ),
        ),
    ),
)

DELAY_RULES = (
    Case(
        "gang termination is off, or comes after a while",
        good=(
            {f"{S}.terminationDelay": ABSENT},
            {f"{S}.terminationDelay": None},
            {f"{S}.terminationDelay": "4h"},
            {f"{S}.terminationDelay": "1h30m", f"{G}[0].terminationDelay": "5m"},
        ),
        bad=(
            (
                {f"{S}.terminationDelay": "0s"},
                (
                    f'{S}.terminationDelay: Invalid value: "0s": must be greater than 0s; '
                    "leave it out to turn gang termination off",
                ),
            ),
            (
                {f"{S}.terminationDelay": "-1m"},
                (
                    f'{S}.terminationDelay: Invalid value: "-1m": must be greater than 0s; '
                    "leave it out to turn gang termination off",
                ),
            ),
            (
                {f"{S}.terminationDelay": "10"},
                (
                    f'{S}.terminationDelay: Invalid value: "10": must be a duration with a unit, '
                    'such as "10s", "10m" or "1h30m"',
                ),
            ),
            (
                {f"{G}[0].terminationDelay": "5m"},
                (
                    f"{G}[0].terminationDelay: Forbidden: only where {S}.terminationDelay is "
                    "given: without it gang termination is off",
                ),
            ),
            (
                {f"{S}.terminationDelay": "4h", f"{G}[0].terminationDelay": "0s"},
                (
                    f'{G}[0].terminationDelay: Invalid value: "0s": must be greater than 0s; '
                    "leave it out to turn gang termination off",
                ),
            ),
        ),
    ),
)

EXPLICIT = {f"{S}.cliqueStartupType": "CliqueStartupTypeExplicit"}
STARTUP_RULES = (
    Case(
        "cliques wait for other cliques there are, and not in circles",
        good=(
            {**EXPLICIT, f"{C}[2].spec.startsAfter": ["leader", "router"]},
            {f"{C}[2].spec.startsAfter": ["nobody"]},
        ),
        bad=(
            (
                {**EXPLICIT, f"{C}[0].spec.startsAfter": ["nobody"]},
                (
                    f'{C}[0].spec.startsAfter[0]: Invalid value: "nobody": '
                    "no clique of this name in the set",
                ),
            ),
            (
                {**EXPLICIT, f"{C}[0].spec.startsAfter": [""]},
                (f"{C}[0].spec.startsAfter[0]: Required value: name the clique to wait for",),
            ),
            (
                {**EXPLICIT, f"{C}[0].spec.startsAfter": ["router"]},
                (
                    f'{C}[0].spec.startsAfter[0]: Invalid value: "router": '
                    "a clique cannot wait for itself",
                ),
            ),
            (
                {**EXPLICIT, f"{C}[0].spec.startsAfter": ["leader", "leader"]},
                (f'{C}[0].spec.startsAfter[1]: Duplicate value: "leader"',),
            ),
            (
                {
                    **EXPLICIT,
                    f"{C}[0].spec.startsAfter": ["worker"],
                    f"{C}[1].spec.startsAfter": ["router"],
                    f"{C}[2].spec.startsAfter": ["leader"],
                },
                (
                    f'{C}: Invalid value: ["leader -> router -> worker -> leader"]: '
                    "startsAfter must not go in circles",
                ),
            ),
        ),
    ),
)

SHARING_RULES = (
    Case(
        "claim templates have names of their own and ask for a device",
        good=({f"{S}.resourceClaimTemplates": [SHARED]},),
        bad=(
            (
                {f"{S}.resourceClaimTemplates": [{**SHARED, "name": ""}]},
                (
                    f"{S}.resourceClaimTemplates[0].name: Required value: "
                    "a claim template must have a name",
                ),
            ),
            (
                {f"{S}.resourceClaimTemplates": [SHARED, SHARED]},
                (f'{S}.resourceClaimTemplates[1].name: Duplicate value: "link"',),
            ),
            (
                {f"{S}.resourceClaimTemplates": [{"name": "link", "templateSpec": {"spec": {}}}]},
                (
                    f"{S}.resourceClaimTemplates[0].templateSpec.spec.devices.requests: "
                    "Required value: at least one device request must be given",
                ),
            ),
        ),
    ),
    Case(
        "what is shared has a name, a scope, and is shared once",
        good=(
            {f"{S}.resourceSharing": [{"name": "a", "scope": "AllReplicas", "namespace": "x"}]},
            {f"{C}[0].resourceSharing": [{"name": "a", "scope": "PerReplica"}]},
        ),
        bad=(
            (
                {f"{S}.resourceSharing": [{"name": "", "scope": "PerReplica"}]},
                (f"{S}.resourceSharing[0].name: Required value: name the claim template to share",),
            ),
            (
                {f"{C}[0].resourceSharing": [{"name": "a", "scope": "PerReplica"}] * 2},
                (
                    f'{C}[0].resourceSharing[1].name: Duplicate value: "a": '
                    "a claim is shared once a list",
                ),
            ),
            (
                {f"{G}[0].resourceSharing": [{"name": "a", "scope": "Some"}]},
                (
                    f'{G}[0].resourceSharing[0].scope: Unsupported value: "Some": supported '
                    'values: "AllReplicas", "PerReplica"',
                ),
            ),
            (
                {
                    f"{S}.resourceClaimTemplates": [SHARED],
                    f"{S}.resourceSharing": [
                        {"name": "link", "scope": "PerReplica", "namespace": "x"}
                    ],
                },
                (
                    f'{S}.resourceSharing[0].namespace: Invalid value: "x": must be empty: "link" '
                    "is a claim template of this object",
                ),
            ),
        ),
    ),
    Case(
        "filters name what there is",
        good=(
            {
                f"{S}.resourceSharing": [
                    {
                        "name": "a",
                        "scope": "PerReplica",
                        "filter": {"childCliqueNames": ["worker"]},
                    }
                ]
            },
            {
                f"{G}[0].resourceSharing": [
                    {
                        "name": "a",
                        "scope": "PerReplica",
                        "filter": {"childCliqueNames": ["worker"]},
                    }
                ]
            },
        ),
        bad=(
            (
                {f"{S}.resourceSharing": [{"name": "a", "scope": "PerReplica", "filter": {}}]},
                (
                    f"{S}.resourceSharing[0].filter: Required value: name at least one clique or "
                    "group, or leave the filter out",
                ),
            ),
            (
                {
                    f"{S}.resourceSharing": [
                        {
                            "name": "a",
                            "scope": "PerReplica",
                            "filter": {
                                "childCliqueNames": ["x"],
                                "childScalingGroupNames": ["y"],
                            },
                        }
                    ]
                },
                (
                    f'{S}.resourceSharing[0].filter.childCliqueNames[0]: Not found: "x": '
                    "no clique of this name in the set",
                    f'{S}.resourceSharing[0].filter.childScalingGroupNames[0]: Not found: "y": '
                    "no group of this name in the set",
                ),
            ),
            (
                {f"{G}[0].resourceSharing": [{"name": "a", "scope": "PerReplica", "filter": {}}]},
                (
                    f"{G}[0].resourceSharing[0].filter: Required value: name at least one clique, "
                    "or leave the filter out",
                ),
            ),
            (
                {
                    f"{G}[0].resourceSharing": [
                        {
                            "name": "a",
                            "scope": "PerReplica",
                            "filter": {"childCliqueNames": ["router"]},
                        }
                    ]
                },
                (
                    f'{G}[0].resourceSharing[0].filter.childCliqueNames[0]: Not found: "router": '
                    "no clique of this name in the group",
                ),
            ),
        ),
    ),
)

MNNVL = "annotations[grove.io/mnnvl-group]"
MNNVL_RULES = (
    Case(
        "a group of multi-node NVLink is none or a name",
        good=(
            {"metadata.annotations": {"grove.io/mnnvl-group": "fabric-a"}},
            {f"{C}[0].annotations": {"grove.io/mnnvl-group": "none"}},
        ),
        bad=tuple(
            (
                {f"{place}.annotations": {"grove.io/mnnvl-group": "Fabric A"}},
                (
                    f'{place}.{MNNVL}: Invalid value: "Fabric A": must be "none" or the name of '
                    "a group: a lowercase RFC 1123 label must consist of lower case alphanumeric "
                    "characters or '-', and must start and end with an alphanumeric character "
                    "(e.g. 'my-name',  or '123-abc', regex used for validation is "
                    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                ),
            )
            for place in ("metadata", f"{C}[0]", f"{G}[0]")
        ),
    ),
    Case(
        "where multi-node NVLink is off, nobody asks for it",
        known=Surroundings(mnnvl=False),
        good=({"metadata.annotations": {"grove.io/mnnvl-group": "none"}},),
        bad=(
            (
                {"metadata.annotations": {"grove.io/mnnvl-group": "a"}},
                (
                    f'metadata.{MNNVL}: Invalid value: "a": multi-node NVLink is disabled here: '
                    'enable it, or write "none"',
                ),
            ),
        ),
    ),
)

RULES = (
    REQUIRED,
    *SET_RULES,
    *CLIQUE_RULES,
    *GROUP_RULES,
    *DELAY_RULES,
    *STARTUP_RULES,
    *SHARING_RULES,
    *MNNVL_RULES,
)


@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_new_set(case: Case) -> None:
    case.check_created(BASE)


@pytest.mark.rule("1.7")
def test_a_manifest_with_ten_faults_reports_ten_in_field_order() -> None:
    faulty = changed(
        BASE,
        {
            "metadata.name": "Chat",
            "spec.replicas": -1,
            "spec.updateStrategy.type": "Never",
            f"{C}[0].spec.replicas": "two",
            f"{C}[0].spec.podSpec.containers[0].img": "x",
            f"{C}[1].spec.minAvailable": 5,
            f"{C}[2].spec.podSpec.nodeName": "n",
            f"{G}[0].minAvailable": 9,
            f"{G}[0].cliqueNames[2]": "nobody",
            f"{G}[0].terminationDelay": "soon",
            "spec.repliacs": 1,
        },
    )
    assert [line.split(": ")[0] for line in said_of(faulty)] == [
        "metadata.name",
        "spec.replicas",
        "spec.updateStrategy.type",
        f"{C}[0].spec.podSpec.containers[0].img",
        f"{C}[0].spec.replicas",
        f"{C}[1].spec.minAvailable",
        f"{C}[2].spec.podSpec.nodeName",
        f"{G}[0].cliqueNames[2]",
        f"{G}[0].minAvailable",
        f"{G}[0].terminationDelay",
        f"{G}[0].terminationDelay",
        "spec.repliacs",
    ]


@pytest.mark.rule("1.5")
def test_a_set_whose_own_names_collide_is_refused() -> None:
    """A clique called like what a join makes of a group would have pods of the same name."""
    twin = changed(BASE, {f"{C}[0].name": "decode-0-worker"})
    assert said_of(twin) == [
        f'{C}[2].name: Invalid value: "worker": would share a PodClique name such as '
        '"<name>-0-decode-0-worker" with clique "decode-0-worker": rename one of them'
    ]
    dotted = changed(BASE, {f"{C}[3]": clique("router.b"), f"{C}[4]": clique("router-b")})  # type: ignore[dict-item]
    assert said_of(dotted) == [
        f'{C}[4].name: Invalid value: "router-b": would share a PodClique name such as '
        '"<name>-0-router-b" with clique "router.b": rename one of them'
    ]
    scaled = {"maxReplicas": 4}
    autoscalers = changed(
        BASE,
        {
            f"{C}[0].name": "decode",
            f"{C}[0].spec.autoScalingConfig": scaled,
            f"{G}[0].scaleConfig": scaled,
        },  # type: ignore[dict-item]
    )
    assert said_of(autoscalers) == [
        f'{C}[0].name: Invalid value: "decode": would share a HorizontalPodAutoscaler name such '
        'as "<name>-0-decode" with the autoscaler of group "decode": rename one of them'
    ]


PER_REPLICA, ALL = ({"scope": scope} for scope in ("PerReplica", "AllReplicas"))


@pytest.mark.rule("1.5")
@pytest.mark.parametrize(
    ("shared", "at", "name", "other"),
    [
        (
            {S: [{"name": "router-all-link", **PER_REPLICA}], f"{C}[0]": [{"name": "link", **ALL}]},
            f"{S}.resourceSharing[0].name",
            "-0-router-all-link",
            'the AllReplicas claim "link" of clique "router"',
        ),
        (
            {
                f"{G}[0]": [{"name": "leader-0-link", **PER_REPLICA}],
                f"{C}[1]": [{"name": "link", **PER_REPLICA}],
            },
            f"{C}[1].resourceSharing[0].name",
            "-0-decode-0-leader-0-link",
            'the PerReplica claim "leader-0-link" of group "decode"',
        ),
        (
            {
                f"{G}[0]": [{"name": "link", **ALL}],
                S: [{"name": "decode-all-link", **PER_REPLICA}],
            },
            f"{S}.resourceSharing[0].name",
            "-0-decode-all-link",
            'the AllReplicas claim "link" of group "decode"',
        ),
    ],
)
def test_claims_of_one_name_are_refused(
    shared: dict[str, Json], at: str, name: str, other: str
) -> None:
    """Two devices would be fought over by two owners of one ResourceClaim."""
    document = changed(BASE, {f"{place}.resourceSharing": to for place, to in shared.items()})
    (fault,) = said_of(document)
    assert fault.startswith(f"{at}: Invalid value: ")
    assert f'would share a ResourceClaim name such as "<name>{name}" with {other}: ' in fault


def test_claims_of_names_alike_that_cannot_meet_are_taken() -> None:
    alike: list[Json] = [{"name": "0-link", **ALL}, {"name": "all-0-link", **PER_REPLICA}]
    assert said_of(changed(BASE, {f"{S}.resourceSharing": alike})) == []


@pytest.mark.rule("1.6")
def test_min_available_and_min_replicas_have_their_defaults() -> None:
    made = build.podcliqueset().with_clique("a", replicas=3).with_clique("b").with_group("g", "b")
    made = made.with_(f"{C}[0].spec.autoScalingConfig.maxReplicas", 5)
    made = made.with_(f"{G}[0].scaleConfig.maxReplicas", 5).with_(f"{G}[0].replicas", 3)
    template = made.record().spec.template
    first, second = template.cliques
    assert first.spec.min_available == 3
    assert (second.spec.replicas, second.spec.min_available) == (1, 1)
    assert first.spec.auto_scaling_config is not None
    assert first.spec.auto_scaling_config.min_replicas == 3
    (group,) = template.pod_clique_scaling_groups
    assert group.min_available == 1
    assert group.scale_config is not None
    assert group.scale_config.min_replicas == 3
    idle = made.with_(f"{G}[0].replicas", 0).record()
    config = idle.spec.template.pod_clique_scaling_groups[0].scale_config
    assert config is not None
    assert config.min_replicas == 1


def test_defaults_are_those_of_the_api() -> None:
    stored = build.podcliqueset("chat").with_clique("a").admitted()
    assert stored["metadata"] == {"name": "chat", "namespace": "default"}
    assert stored["spec"] == {
        "replicas": 1,
        "workloadType": "Inference",
        "template": {
            "cliqueStartupType": "CliqueStartupTypeAnyOrder",
            "headlessServiceConfig": {"publishNotReadyAddresses": True},
            "cliques": [
                {
                    "name": "a",
                    "spec": {
                        "roleName": "a",
                        "replicas": 1,
                        "minAvailable": 1,
                        "podSpec": {
                            "containers": [{"name": "main", "image": "example/main:1"}],
                            "restartPolicy": "Always",
                            "terminationGracePeriodSeconds": 30,
                        },
                    },
                }
            ],
        },
    }
    given = changed(BASE, {f"{S}.headlessServiceConfig": {}, f"{G}[0].replicas": ABSENT})
    stored = kinds.admit(KIND, given)[0]
    assert value_at(stored, ["spec", "template", "headlessServiceConfig"]) == {
        "publishNotReadyAddresses": True
    }
    assert value_at(stored, ["spec", "template", "podCliqueScalingGroups", 0, "replicas"]) == 1
    bare = changed(BASE, {"spec.replicas": ABSENT, "spec.updateStrategy": {}})
    spec, faults = kinds.admit(KIND, bare)
    assert faults == ()
    assert value_at(spec, ["spec", "replicas"]) == 0
    assert value_at(spec, ["spec", "updateStrategy"]) == {
        "type": "RollingRecreate",
        "progressDeadlineSeconds": 600,
        "paused": False,
    }


@pytest.mark.rule("2.7")
def test_a_set_and_a_group_may_idle() -> None:
    idle = changed(BASE, {"spec.replicas": 0, f"{G}[0].replicas": 0, f"{G}[0].minAvailable": 2})
    assert said_of(idle) == []
    assert said_of(idle, changed(BASE, {f"{G}[0].minAvailable": 2})) == []


@pytest.mark.rule("4.1")
def test_the_termination_delay_is_never_defaulted_for_inference() -> None:
    record = build.PodCliqueSetBuilder(BASE).record()
    assert record.spec.template.termination_delay is None
    given = build.PodCliqueSetBuilder(BASE).with_template("terminationDelay", "90s").record()
    assert given.spec.template.termination_delay == Duration(seconds=90)
    both = changed(BASE, {f"{S}.terminationDelay": "4h", f"{G}[0].terminationDelay": "1h"})
    removed = changed(both, {f"{S}.terminationDelay": ABSENT})
    assert said_of(removed, both) == [
        f"{G}[0].terminationDelay: Forbidden: only where {S}.terminationDelay is given: "
        "without it gang termination is off"
    ]


def _immutable(path: str, found: str) -> tuple[str, ...]:
    return (f"{path}: Invalid value: {found}: field is immutable",)


STORED = changed(
    BASE,
    {
        **EXPLICIT,
        f"{C}[2].spec.startsAfter": ["leader"],
        f"{S}.resourceClaimTemplates": [SHARED],
        f"{S}.resourceSharing": [{"name": "link", "scope": "PerReplica"}],
        f"{C}[0].resourceSharing": [{"name": "a", "scope": "PerReplica"}],
        f"{G}[0].resourceSharing": [{"name": "b", "scope": "PerReplica"}],
        "metadata.annotations": {"grove.io/mnnvl-group": "a"},
    },
)

UPDATE_RULES = (
    Case(
        "what may change",
        good=(
            {},
            {"spec.replicas": 7},
            {"spec.updateStrategy.type": "OnDelete"},
            {f"{S}.terminationDelay": "2h"},
            {f"{S}.priorityClassName": "high"},
            {f"{S}.headlessServiceConfig": {"publishNotReadyAddresses": False}},
            {f"{C}[0].labels": {"a": "b"}, f"{C}[0].annotations": {"c": "d"}},
            {f"{C}[0].spec.replicas": 5},
            {f"{C}[0].spec.autoScalingConfig": {"maxReplicas": 9}},
            {f"{C}[0].spec.podSpec.containers[0].image": "example/main:2"},
            {f"{G}[0].replicas": 4, f"{G}[0].annotations": {"e": "f"}},
            {f"{G}[0].scaleConfig": {"maxReplicas": 4}},
        ),
    ),
    Case(
        "cliques are neither added, nor taken away, nor re-ordered",
        bad=(
            (
                {f"{C}[0]": ABSENT},
                (f'{C}: Forbidden: cliques cannot be taken away, missing: "router"',),
            ),
            (
                {f"{C}[3]": clique("extra")},  # type: ignore[dict-item]
                (f"{C}[3].name: Forbidden: cliques cannot be added",),
            ),
        ),
    ),
    Case(
        "what a clique is does not change",
        bad=(
            ({f"{C}[0].spec.roleName": "r"}, _immutable(f"{C}[0].spec.roleName", '"r"')),
            ({f"{C}[0].spec.minAvailable": 2}, _immutable(f"{C}[0].spec.minAvailable", "2")),
            (
                {f"{C}[2].spec.startsAfter": ["router"]},
                _immutable(f"{C}[2].spec.startsAfter", '["router"]'),
            ),
            (
                {
                    f"{C}[{index}].spec.podSpec.schedulerName": "spinney-scheduler"
                    for index in (0, 1, 2)
                },
                tuple(
                    f"{C}[{index}].spec.podSpec.schedulerName: Invalid value: "
                    '"spinney-scheduler": field is immutable'
                    for index in (0, 1, 2)
                ),
            ),
            (
                {f"{C}[0].resourceSharing[0].name": "z"},
                _immutable(f"{C}[0].resourceSharing", '[{"name":"z","scope":"PerReplica"}]'),
            ),
        ),
    ),
    Case(
        "what a group is does not change",
        bad=(
            (
                {G: []},
                (f'{G}: Forbidden: groups cannot be taken away, missing: "decode"',),
            ),
            (
                {f"{G}[1]": {"name": "extra", "cliqueNames": ["router"]}},
                (f"{G}[1].name: Forbidden: groups cannot be added",),
            ),
            (
                {f"{G}[0].cliqueNames": ["worker"]},
                _immutable(f"{G}[0].cliqueNames", '["worker"]'),
            ),
            ({f"{G}[0].minAvailable": 2}, _immutable(f"{G}[0].minAvailable", "2")),
            (
                {f"{G}[0].resourceSharing": []},
                _immutable(f"{G}[0].resourceSharing", "[]"),
            ),
        ),
    ),
    Case(
        "what the template shares and how it starts does not change",
        bad=(
            (
                {f"{S}.cliqueStartupType": "CliqueStartupTypeInOrder"},
                _immutable(f"{S}.cliqueStartupType", '"CliqueStartupTypeInOrder"'),
            ),
            (
                {f"{S}.resourceClaimTemplates": [], f"{S}.resourceSharing": []},
                (
                    *_immutable(f"{S}.resourceClaimTemplates", "[]"),
                    *_immutable(f"{S}.resourceSharing", "[]"),
                ),
            ),
        ),
    ),
    Case(
        "a group of multi-node NVLink is for life",
        bad=(
            (
                {"metadata.annotations": {"grove.io/mnnvl-group": "b"}},
                _immutable(f"metadata.{MNNVL}", '"b"'),
            ),
            (
                {"metadata.annotations": {}},
                (f"metadata.{MNNVL}: Forbidden: cannot be taken away once the object exists",),
            ),
            (
                {f"{C}[0].annotations": {"grove.io/mnnvl-group": "b"}},
                (f"{C}[0].{MNNVL}: Forbidden: cannot be added once the object exists",),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", UPDATE_RULES, ids=repr)
def test_rules_of_a_changed_set(case: Case) -> None:
    case.check_updated(STORED)


def test_cliques_may_be_reordered_exactly_when_their_order_means_nothing() -> None:
    cliques = value_at(BASE, ["spec", "template", "cliques"])
    assert isinstance(cliques, list)
    turned = {C: [cliques[1], cliques[0], cliques[2]]}
    assert said_of(changed(BASE, turned), BASE) == []
    ordered = changed(BASE, {f"{S}.cliqueStartupType": "CliqueStartupTypeInOrder"})
    said = said_of(changed(ordered, turned), ordered)
    assert [line.split(": ")[0] for line in said] == [f"{C}[0]", f"{C}[1]"]
    assert said[0].endswith(
        'the order of cliques is fixed by the start-up type: here stood "router"'
    )


def test_all_update_faults_are_told_beside_the_others() -> None:
    both = changed(STORED, {"spec.replicas": -1, f"{C}[0].spec.roleName": "r"})
    assert [line.split(": ")[0] for line in said_of(both, STORED)] == [
        "spec.replicas",
        f"{C}[0].spec.roleName",
    ]


@pytest.mark.rule("1.10")
def test_replicas_that_reach_nothing_that_runs_are_warned_of() -> None:
    more = changed(BASE, {f"{C}[0].spec.replicas": 5, f"{G}[0].replicas": 4})
    assert warned_of(more, BASE) == [
        f"{C}[0].spec.replicas: reaches only what is created from now on; scale what runs with: "
        "kubectl scale pclq <set>-<replica>-router --replicas=5",
        f"{G}[0].replicas: reaches only what is created from now on; scale what runs with: "
        "kubectl scale pcsg <set>-<replica>-decode --replicas=4",
    ]
    assert warned_of(BASE, BASE) == []


def test_a_restart_policy_that_ends_inference_is_warned_of() -> None:
    once = changed(BASE, {f"{C}[0].spec.podSpec.restartPolicy": "Never"})
    assert said_of(once) == []
    assert warned_of(once) == [
        f'{C}[0].spec.podSpec.restartPolicy: with "Never" a pod that ends stays ended until it is '
        "replaced: Always is meant for Inference"
    ]


@pytest.mark.parametrize("kind", ["OnDelete", "Coherent"])
def test_a_count_that_a_type_of_update_does_not_look_at_is_warned_of(kind: str) -> None:
    strategy: Document = {"type": kind, "rollingRecreate": {"maxUnavailable": 2}}
    path = "spec.updateStrategy.rollingRecreate.maxUnavailable"
    assert warned_of(changed(BASE, {"spec.updateStrategy": strategy})) == [
        f"{path}: does not count with type {kind}"
    ]
    rolling: Document = {**strategy, "type": "RollingRecreate"}
    assert warned_of(changed(BASE, {"spec.updateStrategy": rolling})) == []
