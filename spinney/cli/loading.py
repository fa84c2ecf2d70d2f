"""Requests to the router of examples/serving.yaml, with what came of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from datetime import timedelta

from spinney.ports import Clock

PORT = 8000
QUESTION = {"prompt": "the quick brown fox", "words": 8}
PATIENCE_SECONDS = 30


class Load:
    """Sends requests from several threads, and keeps what came back."""

    def __init__(self, host: str, clock: Clock) -> None:
        """Ask a router by its address."""
        self.answers: list[timedelta] = []
        """How long each answer took."""

        self.failures: list[str] = []
        self.texts: set[str] = set()
        self.decoders: set[str] = set()
        self._host = host
        self._clock = clock
        self._lock = threading.Lock()
        self._left = 0
        self._stopped = threading.Event()

    @property
    def text(self) -> str:
        """An answer."""
        return next(iter(self.texts), "")

    def send(self, count: int, clients: int) -> None:
        """Send so many requests from so many clients, and wait for all answers."""
        self._left = count
        threads = self._started(clients)
        for thread in threads:
            thread.join()

    @contextlib.contextmanager
    def going_on(self, clients: int) -> Iterator[None]:
        """Send one request after the other for as long as the block lasts."""
        self._left = -1
        threads = self._started(clients)
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def told(self) -> str:
        """Return what came of it in one line."""
        total = len(self.answers) + len(self.failures)
        if not self.answers:
            why = f": {self.failures[0]}" if self.failures else ""
            return f"0 of {total} answered{why}"
        ordered = sorted(self.answers)
        median, slow = ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]
        told = f"{len(ordered)} answered, {len(self.failures)} failed"
        return f"{told}; median {_milliseconds(median)}, 95% within {_milliseconds(slow)}"

    def _started(self, clients: int) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]
        for thread in threads:
            thread.start()
        return threads

    def _run(self) -> None:
        while not self._stopped.is_set():
            with self._lock:
                if self._left == 0:
                    return
                self._left -= 1
            self._ask()

    def _ask(self) -> None:
        began = self._clock.elapsed()
        connection = http.client.HTTPConnection(self._host, PORT, timeout=PATIENCE_SECONDS)
        try:
            connection.request("POST", "/generate", json.dumps(QUESTION))
            answer = connection.getresponse()
            body = json.loads(answer.read())
            if answer.status != 200:
                raise OSError(str(body.get("error", answer.status)))
        except (OSError, http.client.HTTPException, ValueError) as error:
            with self._lock:
                self.failures.append(str(error) or type(error).__name__)
            return
        finally:
            connection.close()
        with self._lock:
            self.answers.append(self._clock.elapsed() - began)
            self.texts.add(body["text"])
            self.decoders.add(body["decode"][0])


def _milliseconds(duration: timedelta) -> str:
    return f"{duration / timedelta(milliseconds=1):.0f} ms"
