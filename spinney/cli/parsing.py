"""The parser, and what the verbs share; each group of verbs declares itself in its own module."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import NoReturn, TypeAlias

Run: TypeAlias = Callable[[argparse.Namespace], int]

TRUTHS = ("true", "false")

EVERYWHERE = "everywhere"
"""The title of the options that may stand before and after a verb."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in a call in one line, and where to read on."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(2, f"spinney: {message}\nTry: {self.prog} --help\n")


class VerbParser(Parser):
    """Takes options between the words, as people type them: `get pods -n team chat`."""

    _is_within = False
    takes_command = False
    """Whether what follows `--` is a command, to be found under `command`."""

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse in two passes, options first: argparse offers that for whole parsers only."""
        if self._is_within:
            return super().parse_known_args(args, namespace)
        words = list(args or ())
        command: list[str] = []
        if self.takes_command and "--" in words:
            at = words.index("--")
            words, command = words[:at], words[at + 1 :]
        self._is_within = True
        try:
            found, unknown = self.parse_known_intermixed_args(
                list(self._with_values(words)), namespace
            )
        finally:
            self._is_within = False
        if self.takes_command:
            found.command = command
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _with_values(self, words: Sequence[str]) -> Iterator[str]:
        """Give an option that may stand alone its value, lest it take the next word for one."""
        for word, following in itertools.zip_longest(words, words[1:], fillvalue=""):
            option = self._option_string_actions.get(word)
            if option is None or option.nargs != "?" or following in (option.choices or TRUTHS):
                yield word
            else:
                yield f"{word}={option.const}"


class Verbs:
    """Where the groups of verbs declare themselves."""

    def __init__(self, top: argparse.ArgumentParser) -> None:
        """Add verbs to a parser."""
        self._made = top.add_subparsers(
            title="verbs", dest="verb", metavar="VERB", required=True, parser_class=VerbParser
        )

    def add(self, name: str, run: Run, text: str) -> argparse.ArgumentParser:
        """Declare a verb; `text` is what it does, of which the part up to a colon is the short."""
        made: argparse.ArgumentParser = self._made.add_parser(
            name, help=text.split(":")[0].rstrip("."), description=text, allow_abbrev=False
        )
        made.set_defaults(run=run)
        return made


def take_form(made: argparse.ArgumentParser, forms: Sequence[str]) -> None:
    """Let the form of the answer be chosen; the first is the usual one."""
    made.add_argument(
        "-o", "--output", choices=forms, default=forms[0], help="the form of the answer"
    )


def take_everywhere(made: argparse.ArgumentParser, *, is_top: bool = False) -> None:
    """Let be said which server is asked, and how to print: before the verb and after it."""
    missing = None if is_top else argparse.SUPPRESS
    group = made.add_argument_group(EVERYWHERE)
    group.add_argument(
        "--data",
        metavar="DIR",
        default=missing,
        help="the data folder of a world ($SPINNEY_DATA, else ~/.local/state/spinney)",
    )
    group.add_argument(
        "--kubeconfig",
        metavar="FILE",
        default=missing,
        help="ask the server this file names ($KUBECONFIG, else the world that is up, "
        "else ~/.kube/config)",
    )
    group.add_argument(
        "--context", metavar="NAME", default=missing, help="the context of the kubeconfig"
    )
    group.add_argument(
        "-n", "--namespace", metavar="NAME", default=missing, help="the namespace meant"
    )
    group.add_argument(
        "--no-color",
        action="store_true",
        default=False if is_top else missing,
        help="no colour, also on a terminal ($NO_COLOR)",
    )
    group.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        default=False if is_top else missing,
        help="say which server is asked, and why",
    )


def span(text: str) -> timedelta:
    """Return a time of more than nothing; bare digits are seconds."""
    from spinney.meta import durations

    try:
        found = durations.parse_duration(f"{text}s" if text.isdigit() else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'"{text}": {error}') from error
    if found <= timedelta():
        raise argparse.ArgumentTypeError(f'"{text}": must be more than 0')
    return found
