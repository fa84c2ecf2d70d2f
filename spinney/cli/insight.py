"""The verbs that show what goes on: trees, causes, logs, usage, and ways into pods."""

from __future__ import annotations

import argparse
from datetime import datetime

from spinney.cli import parsing
from spinney.cli.parsing import Run, VerbParser, Verbs

TAIL = 20
"""Of how many last lines the logs of several pods are shown, unless it is said."""


def declare(verbs: Verbs) -> None:
    """Declare what can be typed."""
    _declare_tree(verbs)
    _declare_why(verbs)
    _declare_logs(verbs)
    _declare_top(verbs)
    _declare_exec(verbs)
    _declare_port_forward(verbs)


def _add(verbs: Verbs, name: str, run: Run, text: str) -> argparse.ArgumentParser:
    made = verbs.add(name, run, text)
    parsing.take_everywhere(made)
    return made


def _take_object(made: argparse.ArgumentParser, text: str) -> None:
    made.add_argument("objects", nargs="*", metavar="NAME | KIND/NAME", help=text)


def _declare_tree(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "tree",
        _tree,
        "Draw a system as a tree: set, replicas, groups, cliques, pods, with state, node, and why "
        "something is not ready.",
    )
    _take_object(made, "the set, group, clique, gang, pod or node it begins with; none: all sets")
    made.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    made.add_argument(
        "--all", action="store_true", help="a line for every pod, also for those that are alike"
    )
    made.add_argument("-w", "--watch", action="store_true", help="go on drawing what changes")
    made.add_argument(
        "--until-ready", action="store_true", help="go on drawing until everything is ready"
    )
    made.add_argument(
        "--timeout",
        type=parsing.span,
        metavar="TIME",
        help="for how long at most (default: for ever)",
    )
    parsing.take_form(made, ("table", "json"))


def _declare_why(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "why",
        _why,
        "Tell why something is not ready: the chain of causes down to the root, and what would "
        "unblock it.",
    )
    _take_object(made, "what is asked about; none: every set that is not as it should be")
    parsing.take_form(made, ("text", "json"))


def _declare_logs(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "logs",
        _logs,
        "Print what containers wrote: of a pod, a clique, a gang, a whole set.",
    )
    _take_object(made, "whose pods: those of a set, group, clique or gang, or one pod")
    made.add_argument("-l", "--selector", metavar="LABELS", help="of the pods with these labels")
    made.add_argument("-c", "--container", metavar="NAME", help="of this container only")
    made.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help="go on printing, also of pods that come later, until none is left",
    )
    made.add_argument(
        "-p", "--previous", action="store_true", help="of the run before the last restart"
    )
    made.add_argument(
        "--tail",
        type=int,
        metavar="LINES",
        help=f"only so many last lines of each; -1 is all (default: all of one pod, {TAIL} of "
        "several)",
    )
    made.add_argument(
        "--since", type=parsing.span, metavar="TIME", help="only what is newer: 5s, 2m, 3h"
    )
    made.add_argument(
        "--since-time",
        type=_instant,
        metavar="TIME",
        help="only what is newer: 2026-11-19T08:30:00Z",
    )
    made.add_argument("--timestamps", action="store_true", help="when each line was written")
    made.add_argument(
        "--prefix",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="begin each line with its pod (default: where there are several)",
    )


def _declare_top(verbs: Verbs) -> None:
    made = _add(verbs, "top", _top, "Show how much processor time and memory is used.")
    made.add_argument(
        "objects",
        nargs="*",
        metavar="pods | nodes | NAME | KIND/NAME",
        help="of pods, of nodes, or of the pods of a set, group, clique or gang (default: pods)",
    )
    made.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    made.add_argument("-l", "--selector", metavar="LABELS", help="only those with these labels")
    made.add_argument("--containers", action="store_true", help="a line for every container")
    made.add_argument(
        "--sort-by", choices=("name", "cpu", "memory"), default="name", help="in which order"
    )
    made.add_argument("--no-headers", action="store_true", help="without headings and sums")


def _declare_exec(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "exec",
        _exec,
        "Run a command in a container, and end with its exit code: spinney exec POD -- COMMAND.",
    )
    made.add_argument("pod", metavar="POD", help="the pod: NAME or pod/NAME")
    made.add_argument(
        "-c", "--container", metavar="NAME", help="the container (default: its first)"
    )
    made.add_argument(
        "-i", "--stdin", action="store_true", help="let it read what is typed, or piped in"
    )
    made.add_argument("-t", "--tty", action="store_true", help="give it a terminal of its own")
    assert isinstance(made, VerbParser)
    made.takes_command = True


def _declare_port_forward(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "port-forward",
        _port_forward,
        "Reach ports of a pod from here: listens on local ports until it is interrupted.",
    )
    made.add_argument("pod", metavar="POD", help="the pod: NAME or pod/NAME")
    made.add_argument(
        "ports", nargs="+", metavar="[LOCAL:]REMOTE", help="8080, 8080:80, or :80 for any free one"
    )
    made.add_argument(
        "--address", default="127.0.0.1", metavar="ADDRESS", help="where to listen here"
    )


def _instant(text: str) -> datetime:
    from spinney.meta import times

    try:
        return times.parse_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'"{text}": {error}') from error


def _tree(arguments: argparse.Namespace) -> int:
    from spinney.cli import drawing

    return drawing.run(arguments)


def _why(arguments: argparse.Namespace) -> int:
    from spinney.cli import explaining

    return explaining.run(arguments)


def _logs(arguments: argparse.Namespace) -> int:
    from spinney.cli import tailing

    return tailing.run(arguments)


def _top(arguments: argparse.Namespace) -> int:
    from spinney.cli import measuring

    return measuring.run(arguments)


def _exec(arguments: argparse.Namespace) -> int:
    from spinney.cli import entering

    return entering.run(arguments)


def _port_forward(arguments: argparse.Namespace) -> int:
    from spinney.cli import forwarding

    return forwarding.run(arguments)
