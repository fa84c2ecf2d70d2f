"""The reference of the command line, from the parser itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from spinney.cli import main

PATH = "docs/reference/cli.md"

_HEAD = """\
# Command line

Results go to standard output, the rest to standard error. Exit codes: 0 done; 1 the answer is no
(invalid, differs, not reached in time); 2 the call itself was wrong; 3 the server was not reached,
or did not allow it; 130 interrupted.

"""


def _verbs(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _section(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## spinney {name}\n\n{parser.description}\n\n"
    yield "| argument | meaning |\n|---|---|\n"
    for action in parser._actions:
        words = ", ".join(f"`{word}`" for word in action.option_strings)
        value = action.metavar or ("|".join(action.choices) if action.choices else "")
        named = f"{words} `{value}`" if words and value else words or f"`{value or action.dest}`"
        text = (action.help or "").replace("|", "\\|")
        if action.option_strings and action.default not in (None, False, [], argparse.SUPPRESS):
            text = f"{text} (default: {action.default})"
        yield f"| {named.replace('|', chr(92) + '|')} | {text} |\n"
    yield "\n"


def files() -> Mapping[str, bytes]:
    """Return the page, by its path."""
    verbs = _verbs(main.parser())
    sections = [text for name, parser in verbs.items() for text in _section(name, parser)]
    return {PATH: (_HEAD + "".join(sections)).rstrip("\n").encode() + b"\n"}
