"""Health: whether the server lives, and whether it can be worked with."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.server.asking import Asked
from spinney.server.replies import Reply, text

PATHS = ("/healthz", "/livez", "/readyz")


def _checks(*, is_ready: bool) -> Iterator[tuple[str, str]]:
    """Yield each check with what is wrong, "" where nothing is."""
    yield "ping", ""
    yield "serving", "" if is_ready else "the server starts or stops"


def answer(asked: Asked, *, is_ready: bool) -> Reply | None:
    """Answer a question about health, None where something else is asked."""
    path = asked.target.path
    root = next((root for root in PATHS if path == root or path.startswith(f"{root}/")), "")
    if not root:
        return None
    checks = list(_checks(is_ready=is_ready or root == "/livez"))
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
