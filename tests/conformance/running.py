"""Runs the steps of a case with one kubectl against one server."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.cases import MANIFESTS, Step
from tests.conformance.transcripts import Printed

SECONDS_MAX = 40


@dataclass(frozen=True)
class Runner:
    """A kubectl program with its surroundings."""

    program: Path
    home: Path
    kubeconfig: Path
    folder: Path

    def run(self, step: Step) -> Printed:
        """Run a step, whatever comes of it."""
        stdin = step.stdin
        for name, command in step.takes.items():
            stdin = stdin.replace(f"${{{name}}}", self.run(Step(command)).stdout)
        process = self._started(step, stdin)
        printing = _Lines(process)
        meanwhile: list[Printed] = []
        try:
            if step.meanwhile:
                printing.wait_for(step.after, step)
                meanwhile = [self.run(below) for below in step.meanwhile]
            if step.lines is not None:
                printing.wait_for(step.lines, step)
                process.send_signal(signal.SIGINT)
            process.wait(SECONDS_MAX)
        finally:
            process.kill()
            process.wait()
            printing.finish()
        return Printed(
            command=step.run,
            stdout="".join(printing.lines["stdout"]),
            stderr="".join(printing.lines["stderr"]),
            exit_code=None if step.lines is not None else process.returncode,
            meanwhile=tuple(meanwhile),
        )

    def _started(self, step: Step, stdin: str) -> subprocess.Popen[str]:
        words = step.words
        variables = {}
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        if words.pop(0) != "kubectl":
            raise ValueError(f"a step begins with kubectl: {step.run}")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TMPDIR": str(self.folder),
            "KUBECONFIG": str(self.kubeconfig),
            **variables,
        }
        process = subprocess.Popen(
            [str(self.program), *words],
            cwd=MANIFESTS,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        with process.stdin:
            process.stdin.write(stdin)
        return process


class _Lines:
    """Collects what a process prints, and lets one wait for it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._changed = threading.Condition()
        self._ended = False
        streams = {"stdout": process.stdout, "stderr": process.stderr}
        self._threads = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in streams.items()
        ]
        for thread in self._threads:
            thread.start()

    def _read(self, name, stream) -> None:
        with stream:
            for line in stream:
                with self._changed:
                    self.lines[name].append(line)
                    self._changed.notify_all()
        if name == "stdout":
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def wait_for(self, count: int, step: Step) -> None:
        """Wait until so many lines stand on stdout; a process that ends before fails the case."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._ended or len(self.lines["stdout"]) >= count, SECONDS_MAX
            )
            found = len(self.lines["stdout"])
        if found < count:
            raise AssertionError(
                f"{step.run}: printed {found} lines where {count} were waited for:\n"
                + "".join(self.lines["stdout"] + self.lines["stderr"])
            )

    def finish(self) -> None:
        """Read what is left."""
        for thread in self._threads:
            thread.join(SECONDS_MAX)
