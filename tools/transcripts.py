"""Writes the golden transcripts of tests/conformance anew, with every pinned kubectl.

Run by `make golden`. Arguments that are left are given to pytest: `-k get-tables` runs those cases
alone. What changed is reviewed as a diff before it is committed.

`--reference KUBECONFIG` writes nothing: it runs the table with the newest kubectl against another,
new Kubernetes API server (with our CRDs installed) and prints how that one differs from the golden
files. Each difference wants a reason, in docs/reference/kubectl-support.md, or a repair.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance import cases, transcripts
from tools import kubectl

ROOT = Path(__file__).resolve().parent.parent
TEST = "tests/conformance/test_kubectl.py::test_kubectl_prints_what_it_should"


def main() -> int:
    """Write golden files, or compare them with what another server does."""
    parser = argparse.ArgumentParser(description="Write the golden transcripts anew.")
    parser.add_argument("--reference", metavar="KUBECONFIG", help="compare with another server")
    arguments, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {"SPINNEY_TRANSCRIPTS": folder, "SPINNEY_KUBECTL_VERSIONS": "all"}
        if arguments.reference:
            reference = str(Path(arguments.reference).resolve())
            environment |= {"SPINNEY_REFERENCE": reference, "SPINNEY_KUBECTL_VERSIONS": "newest"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-n", "2", TEST, *others],
            cwd=ROOT,
            env={**os.environ, **environment},
            check=False,
        )
        if arguments.reference:
            return compare(Path(folder))
        if done.returncode == 0:
            says = {(case.group, case.name): case.says for case in cases.load()}
            transcripts.write_golden(Path(folder), says)
    return done.returncode


def compare(folder: Path) -> int:
    """Print how the transcripts in a folder differ from the golden files."""
    minor = kubectl.minors(every=True)[0]
    differing = 0
    for case in cases.load():
        kept = folder / case.group / f"{case.name}.1.{minor}.txt"
        golden = transcripts.golden_file(case.group, case.name, minor)
        if kept.exists() and golden.exists():
            ours = transcripts.without_header(golden.read_text()).splitlines()
            lines = difflib.unified_diff(
                kept.read_text().splitlines(), ours, "reference", str(golden), lineterm="", n=8
            )
            text = "\n".join(lines)
            differing += bool(text)
            print(text, end="\n" if text else "")
    print(f"{differing} cases differ", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
