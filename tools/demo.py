"""The demo: the most that Spinney does today, from a broken manifest to gangs of a whole system.

Run by `make demo`. Every step runs the real command, against a world of its own in a scratch
folder; a step that does not come out as it should ends the demo with exit code 1, and nothing is
left behind.
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
from typing import Any

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
        self.environment = {
            **{key: value for key, value in os.environ.items() if key != "KUBECONFIG"},
            "SPINNEY_DATA": str(folder / "world"),
        }
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
            [*SPINNEY, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        self._show(done.stdout.splitlines(), lines)
        self._show(done.stderr.splitlines(), lines)
        if done.returncode != expect:
            self.failed.append(f"spinney {' '.join(words)}: exit code {done.returncode}")
        return done.stdout, seconds

    def listed(self, resource: str) -> list[Any]:
        """Return the objects of a resource, without showing them."""
        done = subprocess.run(
            [*SPINNEY, "get", resource, "-o", "json"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.failed.append(f"spinney get {resource}: {done.stderr.strip()}")
            return []
        items: list[Any] = json.loads(done.stdout)["items"]
        return items

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
    (demo.folder / "examples").symlink_to(ROOT / "examples")
    _check_manifests(demo)
    demo.say("A control plane on this machine: one command, nothing else to install")
    _, seconds = demo.run("up", "--detach", "--listen", "127.0.0.1:0", lines=20)
    demo.rows.append(("control plane up and answering", f"after {seconds:.2f} s"))
    try:
        _become_gangs(demo)
        _go_on(demo)
    finally:
        demo.say("And away again")
        demo.run("down")


def _check_manifests(demo: Demo) -> None:
    demo.say("Whole systems as one object each: are these manifests good?")
    out, seconds = demo.run("validate", "examples", lines=4)
    valid = sum(line.endswith(": valid") for line in out.splitlines())
    demo.rows.append(("good manifests found valid", f"{valid} in {seconds:.2f} s"))

    demo.say("And this one? Every fault at once, with its line and what must hold")
    (demo.folder / "broken.yaml").write_text(BROKEN)
    demo.run("validate", "broken.yaml", expect=1, lines=20)
    out, _ = demo.run("validate", "-o", "json", "broken.yaml", expect=1, lines=2)
    faults = json.loads(out)["documents"][0]["errors"]
    demo.check(len(faults) == 10, f"broken.yaml has 10 faults, told were {len(faults)}")
    demo.rows.append(("faults told of one broken manifest", f"{len(faults)} of 10"))

    demo.say("What does a field mean?")
    demo.run("fields", "podcliqueset.spec.template.podCliqueScalingGroups.minAvailable", lines=20)


def _become_gangs(demo: Demo) -> None:
    demo.say("A disaggregated inference system, prefill and decode over several nodes")
    began = time.perf_counter()
    demo.run("apply", "-f", "examples/multinode-disaggregated.yaml")
    there = "jsonpath={.status.replicas}=1"
    demo.run("wait", "podcliqueset/giant", "--for", there, "--timeout", "20s")
    whole = "jsonpath={.status.conditions[?(@.type=='Initialized')].status}=True"
    demo.run("wait", "podgang", "--all", "--for", whole, "--timeout", "20s")
    free = "jsonpath={.status.scheduleGatedReplicas}=0"
    demo.run("wait", "podclique/giant-0-router", "--for", free, "--timeout", "20s")
    seconds = time.perf_counter() - began
    gangs = len(demo.listed("podgangs"))
    pods = demo.listed("pods")
    held = sum("schedulingGates" in pod["spec"] for pod in pods)
    demo.rows.append(("one object became", f"{gangs} gangs, {len(pods)} pods, in {seconds:.2f} s"))
    demo.check(
        (gangs, len(pods)) == (3, 34), f"3 gangs of 34 pods, there are {gangs} of {len(pods)}"
    )
    demo.run("get", "podgangs,podcliquescalinggroups,podcliques", lines=24)

    demo.say("The base gang may be placed; scaled gangs wait until it is")
    demo.run("get", "pods", lines=8)
    demo.rows.append(("pods held back for their gang", f"{held} of {len(pods)}"))
    demo.check(0 < held < len(pods), "scaled gangs are held back, the base gang is not")


def _go_on(demo: Demo) -> None:
    name = demo.listed("podcliquescalinggroups")[0]["metadata"]["name"]
    demo.say("Scaled by hand or by an autoscaler: another copy is another gang")
    before = len(demo.listed("pods"))
    replicas = demo.listed("podcliquescalinggroups")[0]["spec"]["replicas"] + 1
    demo.run("scale", f"podcliquescalinggroup/{name}", f"--replicas={replicas}")
    full = f"jsonpath={{.status.replicas}}={replicas}"
    demo.run("wait", f"podcliquescalinggroup/{name}", "--for", full, "--timeout", "20s")
    demo.check(len(demo.listed("pods")) > before, "a scaled group has more pods")

    demo.say("What controllers keep is theirs: an edit by hand is refused, and says by whom")
    clique = demo.listed("podcliques")[0]["metadata"]["name"]
    demo.run("delete", f"podclique/{clique}", expect=3)
    demo.rows.append(("edits of managed objects refused", "1 of 1"))

    demo.say("The whole system goes as it came")
    demo.run("delete", "-f", "examples/multinode-disaggregated.yaml")
    demo.run("wait", "pods", "--all", "--for", "delete", "--timeout", "20s")
    left = len(demo.listed("pods"))
    demo.check(left == 0, f"nothing is left of it, there are {left} pods")
    demo.rows.append(("left behind", f"{left} pods"))


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
        print("  Everything came out as it should. Next: docs/tutorial/first-world.md")
    return 1 if demo.failed else 0


if __name__ == "__main__":
    sys.exit(main())
