"""The command line: what can be typed, and which function does it.

Each verb imports what it needs when it is called, so that `--help` and `validate` start fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import spinney
from spinney.cli import completing

FORMS = ("text", "json")
DOCUMENT_FORMS = ("yaml", "json")
COMPLETION_VARIABLE = "_SPINNEY_COMPLETE"
"""Set by the completion scripts: the command answers with what may follow, and does nothing."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in a call in one line, and where to read on."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"spinney: {message}\nTry: {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """Return everything that can be typed."""
    top = _Parser(
        prog="spinney",
        description="Runs AI workloads made of gangs of pods: serving and training, "
        "here and on Kubernetes.",
        allow_abbrev=False,
    )
    verbs = top.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True)

    def verb(
        name: str, run: Callable[[argparse.Namespace], int], text: str
    ) -> argparse.ArgumentParser:
        made = verbs.add_parser(
            name, help=text.split(":")[0].rstrip("."), description=text, allow_abbrev=False
        )
        made.set_defaults(run=run)
        return made

    check = verb(
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
    _take_form(check, FORMS)

    defaults = verb(
        "show-defaults",
        _show_defaults,
        "Print objects as they would be stored: with their defaults filled in.",
    )
    _take_files(defaults)
    _take_form(defaults, DOCUMENT_FORMS)

    definitions = verb(
        "crds",
        _crds,
        "Print CustomResourceDefinitions: of Spinney's kinds, to install them on a cluster.",
    )
    definitions.add_argument(
        "kinds", nargs="*", metavar="KIND", help="only these, by any of their names"
    )
    _take_form(definitions, DOCUMENT_FORMS)

    explain = verb("fields", _fields, "Print what a field means: as kubectl explain does.")
    explain.add_argument(
        "path", metavar="KIND[.FIELD...]", help="such as podcliqueset.spec.template"
    )
    explain.add_argument(
        "--recursive", action="store_true", help="all fields below, without their texts"
    )

    _take_form(verb("version", _version, "Print the version."), FORMS)

    complete = verb(
        "completion",
        _completion,
        "Print a completion script: source it from the shell's start-up file.",
    )
    complete.add_argument("shell", choices=sorted(completing.SCRIPTS), help="the shell")
    return top


def _take_files(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "files",
        nargs="+",
        metavar="FILE|-|DIR",
        help="manifests; - reads standard input, DIR the files in it",
    )


def _take_form(made: argparse.ArgumentParser, forms: Sequence[str]) -> None:
    made.add_argument(
        "-o", "--output", choices=forms, default=forms[0], help="the form of the answer"
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


def run(words: Sequence[str]) -> int:
    """Do what was typed; returns the exit code."""
    arguments = parser().parse_args(words)

    from spinney.cli.usage import Usage

    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except Usage as error:
        sys.stderr.write(f"spinney: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"spinney: cannot write the answer: {error.strerror or error}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _open_outputs() -> None:
    """Let everything be written: in UTF-8 whatever the locale, and nowhere where it is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def main() -> int:
    """Run the command line; returns the exit code."""
    _open_outputs()
    words = sys.argv[1:]
    if COMPLETION_VARIABLE in os.environ:
        sys.stdout.write("".join(f"{word}\n" for word in completing.answers(parser(), words)))
        return 0
    return run(words)
