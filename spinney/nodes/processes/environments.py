"""The environment a container's process begins with.

What the plan says, and little else: PATH and HOME from whoever started the node, where the plan
names none, and what tells a process about its pod.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from spinney.nodes.processes.spawner import launching
from spinney.ports import ContainerPlan, Sandbox

MARKER = "SPINNEY_CONTAINER"
"""By this a process that was left behind is known: `<world>/<pod uid>/<container>/<attempt>`."""

KEPT = ("PATH", "HOME", "LANG", "TZ")
"""What is taken from the environment the node was started in."""


def environment(
    plan: ContainerPlan,
    sandbox: Sandbox,
    *,
    world: str,
    hosts_file: str,
    gpus: str | None,
    outer: Mapping[str, str],
) -> dict[str, str]:
    """Return the environment of a container; `gpus` are those it may see, None to say nothing."""
    made = {"PATH": launching.PATH, "HOME": sandbox.root}
    made.update({name: outer[name] for name in KEPT if outer.get(name)})
    made.update({"HOSTNAME": sandbox.hostname, "POD_IP": sandbox.ip})
    if gpus is not None:
        made.update({"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": gpus})
    made.update(plan.environment)
    made["SPINNEY_POD_ROOT"] = sandbox.root
    made["SPINNEY_HOSTS_FILE"] = hosts_file
    for name, place in sandbox.volumes.items():
        made[volume_variable(name)] = place
    made[MARKER] = f"{world}/{sandbox.pod_uid}/{plan.name}/{plan.attempt}"
    return made


def volume_variable(name: str) -> str:
    """Return the variable that tells where a volume is: `SPINNEY_VOLUME_MODEL_CACHE`."""
    return f"SPINNEY_VOLUME_{re.sub(r'[^A-Za-z0-9]', '_', name).upper()}"


def outer() -> dict[str, str]:
    """Return the environment this process was started in."""
    return dict(os.environ)
