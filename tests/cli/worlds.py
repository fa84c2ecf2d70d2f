"""What tests of a real world share: the command as a process, and a data folder that is ended."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

TIMEOUT_SECONDS = 50


class World:
    """A data folder, and the command that is told to use it."""

    def __init__(self, root):
        self.root = root
        self.started = []

    @property
    def environment(self):
        kept = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG",)}
        home = str(self.root.parent)
        return {**kept, "SPINNEY_DATA": str(self.root), "HOME": home}

    def run(self, *words, stdin="", **environment):
        """Run the command as a process of its own."""
        return subprocess.run(
            [sys.executable, "-m", "spinney", *map(str, words)],
            env={**self.environment, "PYTHONWARNINGS": "error", **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def start(self, *words, **options):
        """Start the command and leave it running; it is ended with the world."""
        process = subprocess.Popen(
            [sys.executable, "-m", "spinney", *map(str, words)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.started.append(process)
        return process

    def up(self, *words):
        """Bring it up detached, on a port that is free; without nodes, unless some are given."""
        if "--nodes" not in words:
            words = ("--nodes", "none", *words)
        done = self.run("up", "--detach", "--listen", "127.0.0.1:0", *words)
        assert done.returncode == 0, done.stderr
        return done

    def end(self):
        """End everything that was started."""
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()
        self.run("down", "--now")


def lines_until(stream, text):
    """Return the lines of a stream up to the one that begins so."""
    found = []
    for line in stream:
        found.append(line.rstrip("\n"))
        if line.startswith(text):
            return found
    raise AssertionError(f"no line begins with {text!r}: {found}")
