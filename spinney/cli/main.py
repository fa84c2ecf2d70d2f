"""The command line: what can be typed, and how a command ends.

Verbs are declared in groups, and import what they need when they are called, so that `--help` and
`validate` start fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from spinney.cli import completing, insight, objects, offline, parsing, rollouts, world

COMPLETION_VARIABLE = "_SPINNEY_COMPLETE"
"""Set by the completion scripts: the command answers with what may follow, and does nothing."""

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """Return everything that can be typed."""
    top = parsing.Parser(
        prog="spinney",
        description="Runs AI workloads made of gangs of pods: serving and training, "
        "here and on Kubernetes.",
        allow_abbrev=False,
    )
    verbs = parsing.Verbs(top)
    world.declare(verbs)
    objects.declare(verbs)
    insight.declare(verbs)
    rollouts.declare(verbs)
    offline.declare(verbs)
    parsing.take_everywhere(top, is_top=True)
    return top


def run(words: Sequence[str]) -> int:
    """Do what was typed; returns the exit code."""
    arguments = parser().parse_args(words)

    from spinney.cli import failing
    from spinney.meta.errors import SpinneyError

    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except SpinneyError as error:
        return failing.tell(error, sys.stderr)
    except KeyboardInterrupt:
        return INTERRUPTED
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
