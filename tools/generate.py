"""Writes what is generated and committed, or with `--check` says what differs.

A generator is a function that gives the files it makes, by their path in the repository; it adds
itself to `GENERATORS` with the places it owns, so that a file nobody makes any more is seen too.
Run by `make generate`; `make check` runs `python -m tools.generate --check`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from tools import cli_reference, crds, examples, reference, schemas

ROOT = Path(__file__).resolve().parent.parent


class Generator(msgspec.Struct, frozen=True):
    """One sort of generated files."""

    make: Callable[[], Mapping[str, bytes]]
    """Gives the files by path. The same input gives the same bytes."""

    owns: tuple[str, ...]
    """Where its files lie, as globs; whatever else lies there is left over."""


GENERATORS: Mapping[str, Generator] = {
    "schemas": Generator(schemas.files, (schemas.PATH,)),
    "crds": Generator(crds.files, (f"{crds.FOLDER}/*.yaml",)),
    "reference": Generator(reference.files, (f"{reference.FOLDER}/*.md",)),
    "examples": Generator(examples.files, (examples.PATH,)),
    "cli": Generator(cli_reference.files, (cli_reference.PATH,)),
}


def drift(root: Path, generators: Mapping[str, Generator]) -> Iterator[str]:
    """Yield a sentence for each file that is not what would be generated now."""
    for name, generator in generators.items():
        made = generator.make()
        for path, body in sorted(made.items()):
            file = root / path
            if not file.exists():
                yield f"{path}: missing (generator {name})"
            elif file.read_bytes() != body:
                yield f"{path}: differs from what would be generated (generator {name})"
        for path in _left_over(root, generator, made):
            yield f"{path}: nothing makes it any more (generator {name})"


def write(root: Path, generators: Mapping[str, Generator]) -> Iterator[str]:
    """Write every file that differs, remove those left over; yield a line for each."""
    for generator in generators.values():
        made = generator.make()
        for path, body in sorted(made.items()):
            file = root / path
            if not file.exists() or file.read_bytes() != body:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(body)
                yield f"wrote {path}"
        for path in _left_over(root, generator, made):
            (root / path).unlink()
            yield f"removed {path}"


def _left_over(root: Path, generator: Generator, made: Mapping[str, bytes]) -> Iterator[str]:
    for pattern in generator.owns:
        for file in sorted(root.glob(pattern)):
            path = file.relative_to(root).as_posix()
            if path not in made:
                yield path


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.generate [--check]", file=sys.stderr)
        return 2
    if not arguments:
        for line in write(ROOT, GENERATORS):
            print(line)
        return 0
    faults = list(drift(ROOT, GENERATORS))
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print("mend with: make generate", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
