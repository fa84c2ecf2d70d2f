"""The demo: the most that Spinney does today, from a manifest to what is said of it.

Run by `make demo`. Every step runs the real command; a step that does not come out as it should
ends the demo with exit code 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPINNEY = (sys.executable, "-m", "spinney")

BROKEN = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: broken
spec:
  replicas: -1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
      - name: prefill
        spec:
          roleName: prefill
          replicas: 2
          minAvailable: 3
          startsAfter: [decode]
          podSpec:
            containers:
              - name: server
                imgae: example/llm-server:1.0
      - name: decode
        spec:
          roleName: prefill
          startsAfter: [prefill]
          podSpec:
            nodeName: node-7
            containers: [{name: server, image: "example/llm-server:1.0"}]
    podCliqueScalingGroups:
      - name: instance
        cliqueNames: [decode, router]
        minAvailable: 2
        terminationDelay: 10 minutes
"""


class Demo:
    """Runs commands, shows them as a person would type them, and keeps count."""

    def __init__(self, folder: Path) -> None:
        """Work with files of a folder of its own."""
        self.folder = folder
        self.failed: list[str] = []
        self.rows: list[tuple[str, str]] = []
        self.colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ

    def say(self, text: str) -> None:
        """Say what comes now."""
        print(f"\n\033[1m{text}\033[0m" if self.colour else f"\n== {text}", flush=True)

    def run(self, *words: str, expect: int = 0, lines: int = 12) -> tuple[str, float]:
        """Run a command and show how it begins; returns its output and its seconds."""
        print(f"$ spinney {' '.join(words)}", flush=True)
        began = time.perf_counter()
        done = subprocess.run(
            [*SPINNEY, *words], cwd=self.folder, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - began
        self._show(done.stdout.splitlines(), lines)
        self._show(done.stderr.splitlines(), lines)
        if done.returncode != expect:
            self.failed.append(f"spinney {' '.join(words)}: exit code {done.returncode}")
        return done.stdout, seconds

    def check(self, holds: bool, sentence: str) -> None:
        """Note what should have come out."""
        if not holds:
            self.failed.append(sentence)

    @staticmethod
    def _show(lines: Sequence[str], most: int) -> None:
        for line in lines[:most]:
            print(f"  {line if len(line) <= 160 else line[:157] + '...'}")
        if len(lines) > most:
            print(f"  ... and {len(lines) - most} lines more")


def play(demo: Demo) -> None:
    """Go through what there is."""
    examples = demo.folder / "examples"
    examples.symlink_to(ROOT / "examples")
    (demo.folder / "broken.yaml").write_text(BROKEN)

    demo.say("Whole systems as one object each: are these manifests good?")
    out, seconds = demo.run("validate", "examples", lines=6)
    valid = sum(line.endswith(": valid") for line in out.splitlines())
    demo.rows.append(("good manifests found valid", f"{valid} in {seconds:.2f} s"))

    demo.say("And this one? Every fault at once, with its line and what must hold")
    demo.run("validate", "broken.yaml", expect=1, lines=20)
    out, _ = demo.run("validate", "-o", "json", "broken.yaml", expect=1, lines=3)
    faults = json.loads(out)["documents"][0]["errors"]
    demo.check(len(faults) == 10, f"broken.yaml has 10 faults, told were {len(faults)}")
    demo.rows.append(("faults told of one broken manifest", f"{len(faults)} of 10"))

    demo.say("May this change be made to what is stored?")
    stored = (ROOT / "examples" / "scaling-group.yaml").read_text()
    (demo.folder / "stored.yaml").write_text(stored)
    (demo.folder / "changed.yaml").write_text(stored.replace("minAvailable: 1", "minAvailable: 2"))
    out, _ = demo.run("validate", "changed.yaml", "--against", "stored.yaml", expect=1)
    demo.check("field is immutable" in out, "a changed minAvailable is refused")
    demo.rows.append(("forbidden changes caught", "1 of 1"))

    demo.say("What would be stored: the object with its defaults")
    demo.run("show-defaults", "examples/one-pod.yaml", lines=34)

    demo.say("What does a field mean?")
    demo.run("fields", "podcliqueset.spec.template.podCliqueScalingGroups.minAvailable", lines=20)

    demo.say("The same kinds for a Kubernetes cluster")
    out, _ = demo.run("crds", lines=4)
    demo.rows.append(
        ("CustomResourceDefinitions", str(out.count("kind: CustomResourceDefinition")))
    )


def main() -> int:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="spinney-demo-") as folder:
        demo = Demo(Path(folder))
        play(demo)
    demo.say("Summary")
    for what, number in (*demo.rows, ("the whole demo", f"{time.perf_counter() - began:.1f} s")):
        print(f"  {what:<40} {number}")
    for sentence in demo.failed:
        print(f"  FAILED: {sentence}")
    if not demo.failed:
        print("  Everything came out as it should. Next: docs/tutorial/first-manifest.md")
    return 1 if demo.failed else 0


if __name__ == "__main__":
    sys.exit(main())
