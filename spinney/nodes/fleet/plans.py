"""Plans: how a simulated pod is to go, from the shape of its node and its own annotations.

sim.spinney.dev/start-delay: 2s       until its containers run
sim.spinney.dev/ready-delay: 5s       from there until they are ready
sim.spinney.dev/never-ready: "true"   they never are
sim.spinney.dev/run-for: 1m           its containers end after so long
sim.spinney.dev/fails-after: 1m       the same, and with code 1
sim.spinney.dev/exit-code: "3"        what they end with; alone: as soon as they started
sim.spinney.dev/stop-delay: 2s        how long they take to end when told to
sim.spinney.dev/usage: cpu=2,memory=8Gi   what they are said to use
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from spinney.api.core.pod import Pod
from spinney.meta import durations, quantities
from spinney.meta.records import Record
from spinney.nodes.fleet.shapes import Shape

PREFIX: Final = "sim.spinney.dev/"
START_DELAY: Final = f"{PREFIX}start-delay"
READY_DELAY: Final = f"{PREFIX}ready-delay"
NEVER_READY: Final = f"{PREFIX}never-ready"
RUN_FOR: Final = f"{PREFIX}run-for"
FAILS_AFTER: Final = f"{PREFIX}fails-after"
EXIT_CODE: Final = f"{PREFIX}exit-code"
STOP_DELAY: Final = f"{PREFIX}stop-delay"
USAGE: Final = f"{PREFIX}usage"

KNOWN: Final = (
    START_DELAY,
    READY_DELAY,
    NEVER_READY,
    RUN_FOR,
    FAILS_AFTER,
    EXIT_CODE,
    STOP_DELAY,
    USAGE,
)


class BadPlan(ValueError):
    """The user: an annotation of a pod cannot be followed; says which, and what can."""


class Plan(Record):
    """How a pod is to go."""

    start: timedelta = timedelta()
    ready: timedelta | None = timedelta()
    """None: never."""

    stop: timedelta = timedelta()
    runs_for: timedelta | None = None
    """How long its containers run; None: until they are told to end."""

    exit_code: int = 0
    failures_per_million: int = 0


def usual(shape: Shape) -> Plan:
    """Return how pods go on nodes of a shape, unless they say otherwise."""
    return Plan(
        start=shape.start,
        ready=shape.ready,
        stop=shape.stop,
        failures_per_million=shape.failures_per_million,
    )


def plan(pod: Pod, usual: Plan) -> Plan:
    """Return how a pod goes where pods usually go so; raises BadPlan."""
    marks = {
        key: value for key, value in pod.metadata.annotations.items() if key.startswith(PREFIX)
    }
    return _marked(marks, usual) if marks else usual


def _marked(marks: Mapping[str, str], usual: Plan) -> Plan:
    for key in marks:
        if key not in KNOWN:
            raise BadPlan(f"annotation {key} is not known: must be one of {', '.join(KNOWN)}")
    usage(marks)
    runs_for = _duration(marks, RUN_FOR, None)
    fails_after = _duration(marks, FAILS_AFTER, None)
    if runs_for is not None and fails_after is not None:
        raise BadPlan(f"annotations {RUN_FOR} and {FAILS_AFTER} must not both be given: keep one")
    ends_after = fails_after if runs_for is None else runs_for
    code = _exit_code(marks)
    if code is not None and ends_after is None:
        ends_after = timedelta()
    return Plan(
        start=_duration(marks, START_DELAY, usual.start) or timedelta(),
        ready=None if _truth(marks, NEVER_READY) else _duration(marks, READY_DELAY, usual.ready),
        stop=_duration(marks, STOP_DELAY, usual.stop) or timedelta(),
        runs_for=ends_after,
        exit_code=code if code is not None else int(fails_after is not None),
        failures_per_million=usual.failures_per_million,
    )


def _duration(marks: Mapping[str, str], key: str, otherwise: timedelta | None) -> timedelta | None:
    text = marks.get(key)
    if text is None:
        return otherwise
    try:
        found = durations.parse_duration(text)
    except ValueError as error:
        raise BadPlan(f'annotation {key} "{text}": {error}') from error
    if found < timedelta():
        raise BadPlan(f'annotation {key} "{text}": must not be negative')
    return found


def _truth(marks: Mapping[str, str], key: str) -> bool:
    text = marks.get(key, "false")
    if text not in ("true", "false"):
        raise BadPlan(f'annotation {key} "{text}": must be "true" or "false"')
    return text == "true"


def _exit_code(marks: Mapping[str, str]) -> int | None:
    text = marks.get(EXIT_CODE)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text[:4]) <= 255):
        raise BadPlan(f'annotation {EXIT_CODE} "{text}": must be a number from 0 to 255')
    return int(text)


def usage(marks: Mapping[str, str]) -> Mapping[str, int]:
    """Return what annotations say a pod uses, in billionths; raises BadPlan."""
    text = marks.get(USAGE, "")
    found: dict[str, int] = {}
    for pair in filter(None, text.split(",")):
        name, equals, amount = pair.partition("=")
        try:
            found[name] = quantities.parse_quantity(amount)
        except ValueError as error:
            raise BadPlan(f'annotation {USAGE} "{text}": {name or pair}: {error}') from error
        if not equals or name not in ("cpu", "memory") or found[name] < 0:
            raise BadPlan(
                f'annotation {USAGE} "{text}": must be amounts of cpu and memory, '
                "such as cpu=500m,memory=2Gi"
            )
    return found
