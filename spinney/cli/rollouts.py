"""The verbs of updates: how one stands, what was before, going back, holding, and what would be."""

from __future__ import annotations

import argparse

from spinney.cli import parsing
from spinney.cli.parsing import Run, Verbs

DEEDS = ("status", "history", "undo", "pause", "resume", "restart")


def declare(verbs: Verbs) -> None:
    """Declare what can be typed."""
    _declare_plan(verbs)
    made = _add(
        verbs,
        "rollout",
        _rollout,
        "See and steer updates: status, history, undo, pause, resume, restart of a PodCliqueSet.",
    )
    made.add_argument("deed", choices=DEEDS, metavar="|".join(DEEDS), help="what is to be done")
    made.add_argument("objects", nargs="+", metavar="NAME | KIND/NAME", help="the set")
    made.add_argument(
        "-w", "--watch", action="store_true", help="status: go on until the update is complete"
    )
    made.add_argument(
        "--timeout",
        type=parsing.span,
        metavar="TIME",
        help="status -w: for how long at most (default: for ever)",
    )
    made.add_argument("--revision", type=int, metavar="NUMBER", help="history: show this one whole")
    made.add_argument(
        "--diff",
        nargs=2,
        type=int,
        metavar=("FROM", "TO"),
        help="history: in what two revisions differ",
    )
    made.add_argument(
        "--to-revision",
        type=int,
        metavar="NUMBER",
        help="undo: go back to this one (default: the one before)",
    )
    made.add_argument(
        "--dry-run", action="store_true", help="undo, restart: say what would be done, and stop"
    )
    parsing.take_form(made, ("text", "json"))


def _declare_plan(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "plan",
        _plan,
        "Tell what applying changed sets would do, before anything is done: what rolls and why, "
        "every step, how low each level comes, what would block. Ends with 1 where it would.",
    )
    made.add_argument(
        "-f",
        "--filename",
        dest="files",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE|-|DIR",
        help="manifests; - reads standard input",
    )
    made.add_argument("--force-conflicts", action="store_true", help="take fields that others hold")
    made.add_argument(
        "--field-manager", default="spinney", metavar="NAME", help="who would own the fields"
    )
    parsing.take_form(made, ("text", "json"))


def _plan(arguments: argparse.Namespace) -> int:
    from spinney.cli import planning

    return planning.run(arguments)


def _add(verbs: Verbs, name: str, run: Run, text: str) -> argparse.ArgumentParser:
    made = verbs.add(name, run, text)
    parsing.take_everywhere(made)
    return made


_ONLY_FOR = {
    "watch": ("status",),
    "timeout": ("status",),
    "revision": ("history",),
    "diff": ("history",),
    "to_revision": ("undo",),
    "dry_run": ("undo", "restart"),
}


def _rollout(arguments: argparse.Namespace) -> int:
    from spinney.cli import pacing, revising
    from spinney.cli.usage import Usage

    for option, deeds in _ONLY_FOR.items():
        if getattr(arguments, option) not in (None, False) and arguments.deed not in deeds:
            word = option.replace("_", "-")
            raise Usage(f"--{word} goes with rollout {' and '.join(deeds)}")
    if arguments.timeout is not None and not arguments.watch:
        raise Usage("--timeout goes with -w")
    if arguments.output == "json" and (arguments.watch or arguments.deed not in _TOLD_IN_JSON):
        raise Usage("-o json goes with rollout status and history, without -w")
    return pacing.run(arguments) if arguments.deed == "status" else revising.run(arguments)


_TOLD_IN_JSON = ("status", "history")
