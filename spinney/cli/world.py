"""The verbs of the world on this machine: start it, end it, reach it."""

from __future__ import annotations

import argparse

from spinney.cli import parsing
from spinney.cli.parsing import Run, Verbs

DURABILITIES = ("full", "relaxed", "memory")
FORMS = ("text", "json")
LISTEN = "127.0.0.1:7443"


def declare(verbs: Verbs) -> None:
    """Declare what can be typed."""
    up = _add(
        verbs,
        "up",
        _up,
        "Start a control plane here: a Kubernetes API server with Spinney's kinds, kept in the "
        "data folder.",
    )
    up.add_argument(
        "--listen",
        default=LISTEN,
        metavar="HOST:PORT",
        help="where to listen; port 0 picks a free one",
    )
    up.add_argument(
        "--durability",
        choices=DURABILITIES,
        default=DURABILITIES[0],
        help="what is written survives: full a power cut, relaxed a crash of this process, "
        "memory nothing",
    )
    up.add_argument(
        "--nodes",
        action="append",
        default=[],
        metavar="local|none|sim:COUNT[,KEY=VALUE]...",
        help="which nodes run pods: this machine, none, or simulated ones; may be given again "
        "(default: local)",
    )
    up.add_argument(
        "--detach", action="store_true", help="return once it answers, and leave it running"
    )

    up.add_argument("--report-to", type=int, help=argparse.SUPPRESS)

    down = _add(verbs, "down", _down, "End the control plane of the data folder.")
    down.add_argument("--now", action="store_true", help="without waiting for open requests")

    parsing.take_form(
        _add(verbs, "status", _status, "Tell whether a control plane is up: ends with 1 if not."),
        FORMS,
    )

    config = _add(
        verbs,
        "kubeconfig",
        _kubeconfig,
        "Print the path of the kubeconfig: KUBECONFIG=$(spinney kubeconfig) kubectl get pods.",
    )
    which = config.add_mutually_exclusive_group()
    which.add_argument("--show", action="store_true", help="print the file itself")
    which.add_argument(
        "--merge",
        action="store_true",
        help="add it as context spinney to $KUBECONFIG or ~/.kube/config",
    )

    _declare_demo(verbs)
    token = _add(verbs, "token", _token, "Print the token that lets a client in.")
    token.add_argument("--read-only", action="store_true", help="one that may only read")


def _declare_demo(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "demo",
        _demo,
        "Show what Spinney does, in under a minute: an inference system of real processes, in a "
        "world of its own that is gone afterwards.",
    )
    made.add_argument(
        "--keep", action="store_true", help="leave it running at the end, to look around in"
    )


def _add(verbs: Verbs, name: str, run: Run, text: str) -> argparse.ArgumentParser:
    made = verbs.add(name, run, text)
    parsing.take_everywhere(made)
    return made


def _up(arguments: argparse.Namespace) -> int:
    from spinney.cli import starting

    return starting.run(arguments)


def _down(arguments: argparse.Namespace) -> int:
    from spinney.cli import stopping

    return stopping.run(arguments)


def _status(arguments: argparse.Namespace) -> int:
    from spinney.cli import reporting

    return reporting.run(arguments)


def _kubeconfig(arguments: argparse.Namespace) -> int:
    from spinney.cli import letting_in

    return letting_in.kubeconfig(arguments)


def _token(arguments: argparse.Namespace) -> int:
    from spinney.cli import letting_in

    return letting_in.token(arguments)


def _demo(arguments: argparse.Namespace) -> int:
    from spinney.cli import demonstrating

    return demonstrating.run(arguments)
