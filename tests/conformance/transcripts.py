"""Transcripts: what a command printed, with all that differs from run to run masked, and the
golden files they are compared with.

A golden file `golden/<group>/<case>.txt` holds for the newest kubectl and for every older one,
down to where a file `<case>.to-1.NN.txt` takes over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent / "golden"

# What differs from run to run, and wording that differs from client to client alone.
_MASKS = (
    (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "<time>"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "<time>"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
    (r'("?resourceVersion"?: ?)"\d+"', r'\1"<version>"'),
    (r"(Resource Version: +)\d+", r"\1<version>"),
    (r"127\.0\.0\.1:\d{4,5}", "<server>"),
    (r"(Client Version: |Kustomize Version: ).*", r"\1<client>"),
    (r"(?m)^! (?:WARNING|Warning): version difference .*\n", ""),
    (r"(?m)^! WARNING: This version information is deprecated .*\n", ""),
    (r"( (?:force )?deleted) from [a-z0-9-]+ namespace", r"\1"),
    (r"(Too large resource version: \d+, current: )\d+", r"\1<version>"),
    (r"(?m)^! [EIW]\d{4} \d\d:\d\d:\d\d\.\d+ .*\breflector\.go:.*\n", ""),
    (r"(?m)^! ([EIW])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ (\S+):\d+\]", r"! \1 \2]"),
    (r"(?<=over )\d+d(?=\))|(?<=\()\d+d(?= ago\))", "<days>"),
    (r"\S*/(LIVE|MERGED)-\d+/", r"<folder>/\1/"),
)
_AGE = re.compile(r"(^|  )(\d+[smhd](?:\d+[smh])?)( *)(?= |$)(?! *\(\d+%)", re.MULTILINE)

_PRUNED = re.compile(r"(?:^\S+ pruned\n){2,}", re.MULTILINE)


def masked(text: str, masks: Mapping[str, str]) -> str:
    """Return a text without what differs from run to run."""
    for pattern, instead in (*_MASKS, *masks.items()):
        text = re.sub(pattern, instead, text)
    return _PRUNED.sub(_sorted_lines, _AGE.sub(_masked_age, text))


def _sorted_lines(found: re.Match[str]) -> str:
    """Put lines in order that kubectl prints as they come to its mind."""
    return "".join(sorted(found[0].splitlines(keepends=True)))


def _masked_age(found: re.Match[str]) -> str:
    """Mask an age in a column, and leave the column as wide as it is."""
    before, age, after = found.groups()
    return before + ("<age>".ljust(len(age + after)) if after else "<age>")


@dataclass(frozen=True)
class Printed:
    """What one command did."""

    command: str
    stdout: str
    stderr: str
    exit_code: int | None
    meanwhile: tuple[Printed, ...] = ()

    def text(self) -> str:
        """Say it as a person would have seen it; what went to stderr is marked with `!`."""
        parts = [f"$ {self.command}\n", _ended(self.stdout)]
        parts += [f"! {line}".rstrip() + "\n" for line in self.stderr.splitlines()]
        if self.exit_code is None:
            parts.append("interrupted\n")
        elif self.exit_code:
            parts.append(f"exit {self.exit_code}\n")
        parts += [f"meanwhile {printed.text()}" for printed in self.meanwhile]
        return "".join(parts)


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}⏎\n"


def told(printed: list[Printed], masks: Mapping[str, str]) -> str:
    """Return the transcript of some commands."""
    return masked("\n".join(one.text() for one in printed), masks)


def golden_file(group: str, name: str, minor: int, folder: Path = GOLDEN) -> Path:
    """Return the golden file that holds for a version of kubectl."""
    bounds = {}
    for file in (folder / group).glob(f"{name}.to-1.*.txt"):
        bounds[int(file.name.removeprefix(f"{name}.to-1.").removesuffix(".txt"))] = file
    fitting = [bound for bound in bounds if minor <= bound]
    return bounds[min(fitting)] if fitting else folder / group / f"{name}.txt"


def without_header(text: str) -> str:
    """Return a golden file's transcript alone."""
    lines = text.splitlines(keepends=True)
    while lines and lines[0].startswith("#"):
        del lines[0]
    return "".join(lines)


def folded(by_minor: Mapping[int, str]) -> list[tuple[int | None, list[int], str]]:
    """Put versions that print the same, and are neighbours, together, newest first.

    Each entry is the bound in its file's name (None for the newest), its versions, its transcript.
    """
    runs: list[tuple[list[int], str]] = []
    for minor in sorted(by_minor, reverse=True):
        if runs and runs[-1][1] == by_minor[minor]:
            runs[-1][0].append(minor)
        else:
            runs.append(([minor], by_minor[minor]))
    return [
        (None if index == 0 else minors[0], minors, text)
        for index, (minors, text) in enumerate(runs)
    ]


def keep(folder: Path, group: str, name: str, minor: int, text: str) -> None:
    """Write a transcript to be folded into golden files later."""
    file = folder / group / f"{name}.1.{minor}.txt"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def header(says: str, minors: Sequence[int]) -> str:
    """Return the first lines of a golden file: what it shows, and where it is from."""
    versions = " ".join(f"1.{minor}" for minor in sorted(minors))
    return (
        f"# {says}\n# Run against Spinney with kubectl {versions}; what it should be is derived\n"
        "# from the conventions of the Kubernetes API, and reviewed.\n"
    )


def write_golden(folder: Path, says: Mapping[tuple[str, str], str]) -> None:
    """Fold the transcripts kept in a folder into golden files, for cases and what they say.

    Only cases with a transcript are written anew; golden files of no case are taken away.
    """
    for file in GOLDEN.glob("*/*.txt"):
        if (file.parent.name, file.name.split(".to-1.")[0].removesuffix(".txt")) not in says:
            file.unlink()
    for (group, name), sentence in says.items():
        kept = {
            int(file.name.removeprefix(f"{name}.1.").removesuffix(".txt")): file.read_text()
            for file in (folder / group).glob(f"{name}.1.*.txt")
        }
        if not kept:
            continue
        (GOLDEN / group).mkdir(parents=True, exist_ok=True)
        for file in (GOLDEN / group).glob(f"{name}.to-1.*.txt"):
            file.unlink()
        for bound, minors, text in folded(kept):
            ending = ".txt" if bound is None else f".to-1.{bound}.txt"
            (GOLDEN / group / f"{name}{ending}").write_text(header(sentence, minors) + text)
