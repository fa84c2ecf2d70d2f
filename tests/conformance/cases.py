"""The table of kubectl invocations: what `table/*.yaml` says, read into values.

A file holds cases. A case has objects it begins with (`given`, manifests created beforehand), the
`world` it is for (`manned` is one whose pods run) and steps that run in order. A step is a command
line, or a mapping:

* `run`: the command line; `stdin`: what it reads, in which `${name}` stands for what the command
  line `name` of `takes` prints; `since`, `until`: the minor versions of kubectl that know it;
* `after`, `meanwhile`, `lines`: for commands that go on by themselves. Once it has printed `after`
  lines, the steps of `meanwhile` run; once it has printed `lines` lines it is interrupted, or with
  no `lines` it is waited for.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parent
MANIFESTS = FOLDER / "manifests"
OLDEST, NEWEST = 0, 10_000


@dataclass(frozen=True)
class Step:
    """One command line, and how it is run."""

    run: str
    stdin: str = ""
    takes: dict[str, str] = field(default_factory=dict)
    since: int = OLDEST
    until: int = NEWEST
    after: int = 1
    meanwhile: tuple[Step, ...] = ()
    lines: int | None = None

    @property
    def words(self) -> list[str]:
        """The command line as arguments, with its variables before it."""
        return shlex.split(self.run)

    def commands(self):
        """Yield every command line of the step."""
        yield self.run
        for step in self.meanwhile:
            yield from step.commands()


@dataclass(frozen=True)
class Case:
    """Some steps that belong together, in a namespace of their own."""

    group: str
    name: str
    says: str
    steps: tuple[Step, ...]
    given: tuple[str, ...] = ()
    world: str = "plain"
    masks: dict[str, str] = field(default_factory=dict)

    def steps_for(self, minor: int) -> list[Step]:
        """Return the steps a version of kubectl knows."""
        return [step for step in self.steps if step.since <= minor <= step.until]


def _step(said) -> Step:
    if isinstance(said, str):
        return Step(said)
    meanwhile = tuple(_step(below) for below in said.pop("meanwhile", ()))
    return Step(**said, meanwhile=meanwhile)


def _case(group: str, said) -> Case:
    steps = tuple(_step(step) for step in said.pop("steps"))
    name = said.pop("case").replace(" ", "-")
    given = tuple(said.pop("given", ()))
    return Case(group=group, name=name, steps=steps, given=given, **said)


def load() -> list[Case]:
    """Return every case of the table."""
    return [
        _case(file.stem, said)
        for file in sorted((FOLDER / "table").glob("*.yaml"))
        for said in yaml.safe_load(file.read_text())
    ]
