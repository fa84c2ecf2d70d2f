"""Health: whether the server lives, and whether it can be worked with.

Beside its own checks there are those of whoever put the server together: `/readyz` asks them all,
so that it is good only once everything in the process is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from spinney.server.asking import Asked
from spinney.server.replies import Reply, text

PATHS = ("/healthz", "/livez", "/readyz")


Check: TypeAlias = Callable[[], str]
"""Tells what is wrong, "" where nothing is."""


def _checks(is_ready: bool, others: Mapping[str, Check]) -> Iterator[tuple[str, str]]:
    yield "ping", ""
    yield "serving", "" if is_ready else "the server starts or stops"
    for name, check in others.items():
        yield name, check()


def answer(asked: Asked, *, is_ready: bool, others: Mapping[str, Check]) -> Reply | None:
    """Answer a question about health, None where something else is asked."""
    path = asked.target.path
    root = next((root for root in PATHS if path == root or path.startswith(f"{root}/")), "")
    if not root:
        return None
    lives = root == "/livez"
    checks = list(_checks(is_ready or lives, {} if lives else others))
    wanted = path.removeprefix(root).strip("/")
    if wanted:
        found = [check for check in checks if check[0] == wanted]
        if not found:
            return None
        checks = found
    left_out = asked.query.get("exclude", "")
    checks = [check for check in checks if check[0] != left_out]
    bad = [name for name, fault in checks if fault]
    lines = [f"[-]{name} failed: {fault}" if fault else f"[+]{name} ok" for name, fault in checks]
    end = f"{root.strip('/')} check {'failed' if bad else 'passed'}"
    if bad:
        return text("\n".join([*lines, end]) + "\n", 503)
    if "verbose" in asked.query:
        return text("\n".join([*lines, end]) + "\n")
    return text("ok")
