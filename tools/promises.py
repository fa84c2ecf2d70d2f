"""Lists the numbered rules that no test names yet, and refuses tests that name no rule.

A rule stands in docs/reference/promises.md as a line that begins with its number; a test that
guards it carries `@pytest.mark.rule("2.5")`. Run by `make check`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/reference/promises.md"
_RULE = re.compile(r"^\*\*(\d+\.\d+)\*\* ", re.MULTILINE)


def promised(page: str) -> tuple[str, ...]:
    """Return the numbers of the rules a page makes, in order."""
    return tuple(_RULE.findall(page))


def guarded(source: str) -> Iterator[tuple[str, int]]:
    """Yield each rule number a test file names, with its line."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "rule"
            and ast.unparse(node.func.value) == "pytest.mark"
        ):
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value), node.lineno


def main() -> int:
    rules = promised((ROOT / PAGE).read_text())
    named: set[str] = set()
    unknown: list[str] = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for rule, line in guarded(file.read_text()):
            named.add(rule)
            if rule not in rules:
                unknown.append(f"{file.relative_to(ROOT)}:{line}: no rule {rule} in {PAGE}")
    without = [rule for rule in rules if rule not in named]
    print(f"{len(rules) - len(without)} of {len(rules)} promises have a test that names them")
    if without:
        print(f"without one: {', '.join(without)}")
    for sentence in unknown:
        print(sentence, file=sys.stderr)
    return 1 if unknown or not rules else 0


if __name__ == "__main__":
    sys.exit(main())
