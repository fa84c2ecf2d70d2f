"""The verbs that read and write objects, of whatever server is asked."""

from __future__ import annotations

import argparse
from datetime import timedelta

from spinney.cli import parsing
from spinney.cli.parsing import Run, Verbs

DRY_RUNS = ("none", "client", "server")
CASCADES = ("background", "foreground", "orphan")


def declare(verbs: Verbs) -> None:
    """Declare what can be typed."""
    _declare_apply(verbs)
    _declare_get(verbs)
    _declare_describe(verbs)
    _declare_delete(verbs)
    _declare_scale(verbs)
    _declare_wait(verbs)
    _declare_events(verbs)
    _declare_edit(verbs)
    _declare_diff(verbs)


def _add(verbs: Verbs, name: str, run: Run, text: str) -> argparse.ArgumentParser:
    made = verbs.add(name, run, text)
    parsing.take_everywhere(made)
    return made


def _declare_apply(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "apply",
        _apply,
        "Make objects as manifests say: those that are missing are created, the others changed. "
        "Always by server-side apply.",
    )
    _take_manifests(made, is_required=True)
    _take_kustomize(made)
    made.add_argument(
        "--server-side", action="store_true", help="for those used to kubectl: it always is"
    )
    made.add_argument("--force-conflicts", action="store_true", help="take fields that others hold")
    _take_manager(made)
    made.add_argument(
        "--dry-run",
        nargs="?",
        const="client",
        default="none",
        choices=DRY_RUNS,
        help="do not store: client checks here, server does everything but store",
    )
    made.add_argument(
        "-o",
        "--output",
        choices=("text", "name", "yaml", "json"),
        default="text",
        help="the form of the answer",
    )


def _declare_get(verbs: Verbs) -> None:
    made = _add(verbs, "get", _get, "Show objects: as a table, or as they are.")
    _take_objects(made)
    _take_manifests(made)
    _take_selection(made)
    made.add_argument("-w", "--watch", action="store_true", help="go on showing what changes")
    made.add_argument(
        "--watch-only", action="store_true", help="show only what changes from now on"
    )
    made.add_argument(
        "-o",
        "--output",
        default="table",
        metavar="table|wide|yaml|json|name|jsonpath=TEMPLATE",
        help="the form of the answer",
    )
    made.add_argument("--no-headers", action="store_true", help="a table without headings")
    made.add_argument(
        "-L",
        "--label-columns",
        action="append",
        default=[],
        metavar="LABEL",
        help="show a label as a column",
    )
    made.add_argument("--show-labels", action="store_true", help="show all labels as a column")
    made.add_argument(
        "--show-managed-fields", action="store_true", help="with yaml or json: who owns what"
    )
    made.add_argument(
        "--ignore-not-found", action="store_true", help="what is not there is no error"
    )


def _declare_describe(verbs: Verbs) -> None:
    made = _add(verbs, "describe", _describe, "Tell all about objects: fields, conditions, events.")
    _take_objects(made)
    _take_manifests(made)
    _take_selection(made, with_fields=False)


def _declare_delete(verbs: Verbs) -> None:
    made = _add(verbs, "delete", _delete, "Delete objects, and wait until they are gone.")
    _take_objects(made)
    _take_manifests(made)
    _take_selection(made)
    made.add_argument("--all", action="store_true", help="every object of the kind")
    made.add_argument(
        "--cascade",
        choices=CASCADES,
        default="background",
        help="what becomes of the objects it owns: deleted after, before, or left",
    )
    made.add_argument(
        "--grace-period", type=int, metavar="SECONDS", help="how long pods have to end"
    )
    made.add_argument("--now", action="store_true", help="the same as --grace-period 1")
    made.add_argument("--force", action="store_true", help="forget pods at once, ended or not")
    made.add_argument(
        "--wait",
        nargs="?",
        const="true",
        default=True,
        type=_yes_or_no,
        metavar="true|false",
        help="wait until they are gone",
    )
    _take_timeout(made, "how long to wait", "none")
    made.add_argument(
        "--ignore-not-found", action="store_true", help="what is not there is no error"
    )
    made.add_argument(
        "--dry-run",
        nargs="?",
        const="client",
        default="none",
        choices=DRY_RUNS,
        help="do not delete: client only names them, server does everything but delete",
    )
    made.add_argument(
        "-o", "--output", choices=("text", "name"), default="text", help="the form of the answer"
    )


def _declare_scale(verbs: Verbs) -> None:
    made = _add(verbs, "scale", _scale, "Set how many replicas objects have.")
    _take_objects(made)
    _take_manifests(made)
    _take_selection(made, with_fields=False)
    made.add_argument("--all", action="store_true", help="every object of the kind")
    made.add_argument("--replicas", type=int, required=True, metavar="COUNT", help="how many")
    made.add_argument(
        "--current-replicas", type=int, metavar="COUNT", help="only if it has so many now"
    )


def _declare_wait(verbs: Verbs) -> None:
    made = _add(verbs, "wait", _wait, "Wait until something holds of objects.")
    _take_objects(made)
    _take_manifests(made)
    _take_selection(made)
    made.add_argument("--all", action="store_true", help="every object of the kind")
    made.add_argument(
        "--for",
        dest="condition",
        required=True,
        metavar="ready|condition=TYPE[=STATUS]|jsonpath={PATH}[=VALUE]|create|delete",
        help="what must hold; ready: all that is wanted of it is there, and serves",
    )
    _take_timeout(made, "how long to wait", "30s")


def _declare_events(verbs: Verbs) -> None:
    made = _add(verbs, "events", _events, "Show what happened, the latest last.")
    made.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    made.add_argument(
        "--for", dest="about", metavar="KIND/NAME", help="only what happened to this object"
    )
    made.add_argument("--types", metavar="TYPE,...", help="only of these types: Normal, Warning")
    made.add_argument("-w", "--watch", action="store_true", help="go on showing what happens")
    made.add_argument("--no-headers", action="store_true", help="without headings")
    parsing.take_form(made, ("table", "yaml", "json"))


def _declare_edit(verbs: Verbs) -> None:
    made = _add(
        verbs,
        "edit",
        _edit,
        "Change objects in an editor: $SPINNEY_EDITOR, $KUBE_EDITOR, $EDITOR, else vi.",
    )
    _take_objects(made)
    parsing.take_form(made, ("yaml", "json"))


def _declare_diff(verbs: Verbs) -> None:
    made = _add(
        verbs, "diff", _diff, "Show what apply would change: ends with 1 where it is anything."
    )
    _take_manifests(made, is_required=True)
    _take_kustomize(made)
    made.add_argument(
        "--server-side", action="store_true", help="for those used to kubectl: it always is"
    )
    made.add_argument("--force-conflicts", action="store_true", help="take fields that others hold")
    _take_manager(made)


def _take_objects(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "objects",
        nargs="*",
        metavar="KIND[,KIND...] [NAME...] | KIND/NAME...",
        help="which objects; a kind by any of its names, `all` for the usual ones",
    )


def _take_manifests(made: argparse.ArgumentParser, *, is_required: bool = False) -> None:
    made.add_argument(
        "-f",
        "--filename",
        dest="files",
        action="extend",
        nargs="+",
        default=[],
        metavar="FILE|-|DIR",
        help="manifests; - reads standard input"
        if is_required
        else "the objects of these manifests",
    )


def _take_kustomize(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "-k",
        "--kustomize",
        metavar="DIR",
        help="not done here: pipe `kubectl kustomize DIR` into -f -",
    )


def _take_selection(made: argparse.ArgumentParser, *, with_fields: bool = True) -> None:
    made.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    made.add_argument(
        "-l", "--selector", metavar="LABELS", help="only those with these labels: role=server,!old"
    )
    if with_fields:
        made.add_argument(
            "--field-selector",
            metavar="FIELDS",
            help="only those with these fields: metadata.name=chat",
        )


def _take_manager(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--field-manager",
        default="spinney",
        metavar="NAME",
        help="who owns the fields",
    )


def _take_timeout(made: argparse.ArgumentParser, text: str, usual: str) -> None:
    made.add_argument(
        "--timeout", type=_duration, metavar="TIME", help=f"{text}: 90s, 5m (default: {usual})"
    )


def _duration(text: str) -> timedelta:
    from spinney.meta import durations

    try:
        return durations.parse_duration(f"{text}s" if text.isdigit() else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'"{text}": {error}') from error


def _yes_or_no(text: str) -> bool:
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    raise argparse.ArgumentTypeError(f'"{text}" must be true or false')


def _apply(arguments: argparse.Namespace) -> int:
    from spinney.cli import applying

    return applying.run(arguments)


def _get(arguments: argparse.Namespace) -> int:
    from spinney.cli import getting

    return getting.run(arguments)


def _describe(arguments: argparse.Namespace) -> int:
    from spinney.cli import describing

    return describing.run(arguments)


def _delete(arguments: argparse.Namespace) -> int:
    from spinney.cli import deleting

    return deleting.run(arguments)


def _scale(arguments: argparse.Namespace) -> int:
    from spinney.cli import scaling

    return scaling.run(arguments)


def _wait(arguments: argparse.Namespace) -> int:
    from spinney.cli import waiting

    return waiting.run(arguments)


def _events(arguments: argparse.Namespace) -> int:
    from spinney.cli import happenings

    return happenings.run(arguments)


def _edit(arguments: argparse.Namespace) -> int:
    from spinney.cli import editing

    return editing.run(arguments)


def _diff(arguments: argparse.Namespace) -> int:
    from spinney.cli import differing

    return differing.run(arguments)
