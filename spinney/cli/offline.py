"""The verbs that need no server."""

from __future__ import annotations

import argparse
import sys

import spinney
from spinney.cli import completing, parsing
from spinney.cli.parsing import Verbs

FORMS = ("text", "json")
DOCUMENT_FORMS = ("yaml", "json")


def declare(verbs: Verbs) -> None:
    """Declare what can be typed."""
    check = verbs.add(
        "validate",
        _validate,
        "Check manifests as a server would: defaults, then every fault of every document.",
    )
    _take_files(check)
    check.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="FILE|DIR",
        help="the objects as they are stored: what may not change is checked too",
    )
    parsing.take_form(check, FORMS)

    defaults = verbs.add(
        "show-defaults",
        _show_defaults,
        "Print objects as they would be stored: with their defaults filled in.",
    )
    _take_files(defaults)
    parsing.take_form(defaults, DOCUMENT_FORMS)

    definitions = verbs.add(
        "crds",
        _crds,
        "Print CustomResourceDefinitions: of Spinney's kinds, to install them on a cluster.",
    )
    definitions.add_argument(
        "kinds", nargs="*", metavar="KIND", help="only these, by any of their names"
    )
    parsing.take_form(definitions, DOCUMENT_FORMS)

    explain = verbs.add("fields", _fields, "Print what a field means: as kubectl explain does.")
    explain.add_argument(
        "path", metavar="KIND[.FIELD...]", help="such as podcliqueset.spec.template"
    )
    explain.add_argument(
        "--recursive", action="store_true", help="all fields below, without their texts"
    )

    parsing.take_form(verbs.add("version", _version, "Print the version."), FORMS)

    complete = verbs.add(
        "completion",
        _completion,
        "Print a completion script: source it from the shell's start-up file.",
    )
    complete.add_argument("shell", choices=sorted(completing.SCRIPTS), help="the shell")


def _take_files(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "files",
        nargs="+",
        metavar="FILE|-|DIR",
        help="manifests; - reads standard input, DIR the files in it",
    )


def _validate(arguments: argparse.Namespace) -> int:
    from spinney.cli import manifests, validating
    from spinney.cli.usage import Usage

    stored = manifests.read(arguments.against)
    if arguments.against and not stored:
        raise Usage("--against: no documents found")
    results = validating.check(manifests.read(arguments.files), stored)
    write = validating.write_json if arguments.output == "json" else validating.write_text
    write(results, sys.stdout, sys.stderr)
    return 0 if all(result.is_valid for result in results) else 1


def _show_defaults(arguments: argparse.Namespace) -> int:
    from spinney.cli import manifests, printing, validating

    results = validating.check(manifests.read(arguments.files), ())
    if not all(result.is_valid for result in results):
        validating.write_faults(results, sys.stderr)
        return 1
    documents = (result.document for result in results)
    printing.write_documents(documents, arguments.output, sys.stdout)
    return 0


def _crds(arguments: argparse.Namespace) -> int:
    from spinney.api import crds
    from spinney.cli import naming, printing

    documents = [crds.crd(kind) for kind in naming.chosen(arguments.kinds)]
    printing.write_documents(documents, arguments.output, sys.stdout)
    return 0


def _fields(arguments: argparse.Namespace) -> int:
    from spinney.api import fields
    from spinney.cli import naming
    from spinney.cli.usage import Usage

    word, steps = fields.parse_path(arguments.path)
    try:
        text = fields.describe(naming.kind(word), steps, recursive=arguments.recursive)
    except fields.NoSuchField as error:
        raise Usage(str(error)) from error
    sys.stdout.write(f"{text}\n")
    return 0


def _version(arguments: argparse.Namespace) -> int:
    if arguments.output == "json":
        sys.stdout.write(f'{{"version": "{spinney.__version__}"}}\n')
    else:
        sys.stdout.write(f"spinney {spinney.__version__}\n")
    return 0


def _completion(arguments: argparse.Namespace) -> int:
    sys.stdout.write(completing.SCRIPTS[arguments.shell])
    return 0
