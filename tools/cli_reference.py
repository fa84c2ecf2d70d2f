"""The reference of the command line, from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping

from spinney.cli import main, parsing

PATH = "docs/reference/cli.md"

_HEAD = """\
# Command line

Results go to standard output, the rest to standard error. Exit codes: 0 done; 1 the answer is no
(invalid, differs, not reached in time); 2 the call itself was wrong; 3 the server was not reached,
or did not allow it; 130 interrupted. `down` and Ctrl-C end `up` with 0.

"""

_EVERYWHERE = """\
## Everywhere

Before the verb, and after it where it asks or runs a server. In this order a server is chosen:
`--kubeconfig`; `--data`, where it is given; `$KUBECONFIG`; the world of the data folder, where it
is up; `~/.kube/config`. `-v` says which it was.

"""


def _verbs(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _table(actions: Iterable[argparse.Action]) -> Iterator[str]:
    yield "| argument | meaning |\n|---|---|\n"
    for action in actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        words = ", ".join(f"`{word}`" for word in action.option_strings)
        value = action.metavar or ("|".join(action.choices) if action.choices else "")
        named = f"{words} `{value}`" if words and value else words or f"`{value or action.dest}`"
        text = (action.help or "").replace("|", "\\|")
        if action.option_strings and action.default not in _NO_DEFAULT:
            text = f"{text} (default: {action.default})"
        yield f"| {named.replace('|', chr(92) + '|')} | {text} |\n"
    yield "\n"


_NO_DEFAULT: tuple[object, ...] = (None, False, True, [], argparse.SUPPRESS)


def _shared(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the options that a parser has in common with all others."""
    groups = [group for group in parser._action_groups if group.title == parsing.EVERYWHERE]
    return [action for group in groups for action in group._group_actions]


def _section(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## spinney {name}\n\n{parser.description}\n\n"
    shared = _shared(parser)
    yield from _table(action for action in parser._actions if action not in shared)


def files() -> Mapping[str, bytes]:
    """Return the page, by its path."""
    top = main.parser()
    shared = [_EVERYWHERE, *_table(_shared(top))]
    sections = [text for name, verb in _verbs(top).items() for text in _section(name, verb)]
    return {PATH: (_HEAD + "".join([*shared, *sections])).rstrip("\n").encode() + b"\n"}
