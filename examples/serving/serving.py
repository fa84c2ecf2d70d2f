"""A language model served in parts, small enough to read: the programs of examples/serving.yaml.

One file, five roles, named by the first argument. A router takes prompts over HTTP and has them
answered in two steps, each by its own group of processes:

    prefill   a leader and its workers read the prompt, each a part of it, and add up what is found
    decode    a leader and its workers write the answer, each looking for the next word in its
              part of the vocabulary

The model is arithmetic, not intelligence: the same prompt has the same answer, whoever takes part.
Processes find each other by the names Spinney gives pods, from the GROVE_ variables it puts into
their environment. Only Python's standard library is needed.

    curl -d '{"prompt": "the quick brown fox", "words": 8}' http://ADDRESS-OF-THE-ROUTER:8000/generate
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "8000"))
PATIENCE_SECONDS = 10
WORDS_MOST = 256
PRIME = 2_147_483_647
WIDTH = 32
WORDS = (
    "a the this that some no every light water stone river tree leaf bird cloud night morning "
    "winter summer road house door window table letter word song voice story name hand eye heart "
    "sleeps falls rises opens closes waits turns burns grows shines remembers forgets carries "
    "under over beside within before after slowly quietly always never softly again and but while "
    "cold warm bright old new"
)
VOCABULARY = WORDS.split()


# The model


def weight(one: int, other: int) -> int:
    """Return a number for two numbers that looks like chance, and never changes."""
    mixed = (one * 2_654_435_761 + other * 40_503 + 12_345) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    return (mixed * 2_246_822_519) % PRIME


def read(tokens: list[list[int]]) -> list[int]:
    """Return what is found in tokens, each with its place: the part of one process."""
    return [
        sum(weight(token + place * 7, column) for place, token in tokens) % PRIME
        for column in range(WIDTH)
    ]


def look(state: list[int], part: int, parts: int) -> list[int]:
    """Return the best next word in a part of the vocabulary, with how good it is."""
    scores = (
        [sum(state[column] * weight(word, column) for column in range(WIDTH)) % PRIME, word]
        for word in range(part, len(VOCABULARY), parts)
    )
    return max(scores)


def added(states: list[list[int]]) -> list[int]:
    """Return several findings as one."""
    return [sum(column) % PRIME for column in zip(*states, strict=True)]


def tokens_of(prompt: str) -> list[list[int]]:
    """Return the words of a prompt as numbers, each with its place."""
    return [
        [place, sum(ord(letter) * 31**at for at, letter in enumerate(word)) % PRIME]
        for place, word in enumerate(prompt.split())
    ]


# Finding each other


def environment(name: str) -> str:
    """Return a variable Spinney puts into every pod."""
    if name not in os.environ:
        sys.exit(f"{name} is not set: run this as a pod of a PodCliqueSet (examples/serving.yaml)")
    return os.environ[name]


def address(host: str) -> str:
    """Return the address of a pod by its name, "" where there is none."""
    full = f"{host}.{environment('GROVE_HEADLESS_SERVICE')}"
    hosts = os.environ.get("SPINNEY_HOSTS_FILE")
    if hosts is None:
        try:
            return str(socket.getaddrinfo(full, PORT, socket.AF_INET)[0][4][0])
        except OSError:
            return ""
    with open(hosts, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if full in words[1:]:
                return words[0]
    return ""


def leaders(step: str) -> list[str]:
    """Return the leaders of a step that have an address: one in each copy of its group."""
    name = f"{environment('GROVE_PCS_NAME')}-{environment('GROVE_PCS_INDEX')}-{step}"
    found = (f"{name}-{copy}-{step}-leader-0" for copy in itertools.count())
    return list(itertools.takewhile(address, found))


def workers() -> list[str]:
    """Return the workers of a leader's own copy of the group: all its pods but the leader."""
    copy = f"{environment('GROVE_PCSG_NAME')}-{environment('GROVE_PCSG_INDEX')}"
    step = sys.argv[1].removesuffix("-leader")
    count = int(environment("GROVE_PCSG_TEMPLATE_NUM_PODS")) - 1
    return [f"{copy}-{step}-worker-{index}" for index in range(count)]


class Unavailable(Exception):
    """Somebody who is needed does not answer now."""


class Peer:
    """Another pod, and the connection to it."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, path: str, question: object = None) -> dict:
        """Return what it answers; a connection that broke is made anew once."""
        for is_last in (self._connection is None, True):
            try:
                return self._ask(path, question)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._connection = None
                if is_last:
                    raise Unavailable(f"{self.host}: {error or type(error).__name__}") from error
        raise AssertionError("the last attempt answers or raises")

    def _ask(self, path: str, question: object) -> dict:
        if self._connection is None:
            found = address(self.host)
            if not found:
                raise OSError("it has no address")
            self._connection = http.client.HTTPConnection(found, PORT, timeout=PATIENCE_SECONDS)
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        method = "GET" if question is None else "POST"
        self._connection.request(method, path, None if question is None else json.dumps(question))
        answer = self._connection.getresponse()
        body = json.loads(answer.read())
        if answer.status != 200:
            raise OSError(body.get("error", answer.status))
        return body


# The roles


class Worker:
    """Takes a part of each step its leader makes."""

    def ready(self) -> None:
        """Raise Unavailable where it cannot work; it always can."""

    def answer(self, path: str, question: dict) -> dict:
        """Do a part."""
        if path == "/read":
            return {"state": read(question["tokens"])}
        if path == "/look":
            return {"best": look(question["state"], question["part"], question["parts"])}
        raise KeyError(path)


class Leader(Worker):
    """Divides a step among its workers and itself, and puts together what they find."""

    def __init__(self) -> None:
        self.workers = [Peer(host) for host in workers()]
        self._turn = threading.Lock()

    def ready(self) -> None:
        """Raise Unavailable unless every worker answers: they are one gang."""
        with self._turn:
            for peer in self.workers:
                peer.ask("/ready")

    def answer(self, path: str, question: dict) -> dict:
        """Do a step, one at a time."""
        with self._turn:
            if path == "/prefill":
                return self._prefill(tokens_of(question["prompt"]))
            if path == "/decode":
                return self._decode(question["state"], question["words"])
        raise KeyError(path)

    def _prefill(self, tokens: list[list[int]]) -> dict:
        parts = len(self.workers) + 1
        found = [read(tokens[::parts])]
        for index, peer in enumerate(self.workers, 1):
            found.append(peer.ask("/read", {"tokens": tokens[index::parts]})["state"])
        return {"state": added(found), "by": self._names()}

    def _decode(self, state: list[int], count: int) -> dict:
        parts, words = len(self.workers) + 1, []
        for _ in range(count):
            found = [look(state, 0, parts)]
            for index, peer in enumerate(self.workers, 1):
                question = {"state": state, "part": index, "parts": parts}
                found.append(peer.ask("/look", question)["best"])
            word = max(found)[1]
            words.append(VOCABULARY[word])
            state = added([state, read([[len(words), word + 1]])])
        return {"text": " ".join(words), "by": self._names()}

    def _names(self) -> list[str]:
        return [socket.gethostname(), *(peer.host for peer in self.workers)]


class Router:
    """Sends each prompt to a prefill leader and then to a decode leader, in turns."""

    def __init__(self) -> None:
        self._turns = {"prefill": itertools.count(), "decode": itertools.count()}
        self._pause = threading.Event()

    def ready(self) -> None:
        """Raise Unavailable unless both steps have a leader that answers."""
        for step in ("prefill", "decode"):
            self._by_some(step, "/ready", None, attempts=1)

    def answer(self, path: str, question: dict) -> dict:
        """Have a prompt answered."""
        if path != "/generate":
            raise KeyError(path)
        prompt, words = str(question["prompt"]), int(question.get("words", 12))
        if not 0 < words <= WORDS_MOST:
            raise ValueError(f"words: must be from 1 to {WORDS_MOST}")
        found = self._by_some("prefill", "/prefill", {"prompt": prompt})
        told = self._by_some("decode", "/decode", {"state": found["state"], "words": words})
        return {"text": told["text"], "prefill": found["by"], "decode": told["by"]}

    def _by_some(self, step: str, path: str, question: object, attempts: int = 40) -> dict:
        """Return what some leader of a step answers: the next one where one does not."""
        trouble: Exception = Unavailable(f"no leader of {step} has an address")
        for attempt in range(attempts):
            there = leaders(step)
            turn = next(self._turns[step])
            for offset in range(len(there)):
                try:
                    return Peer(there[(turn + offset) % len(there)]).ask(path, question)
                except Unavailable as error:
                    trouble = error
            if attempt < attempts - 1:
                self._pause.wait(0.25)
        raise trouble


ROLES = {
    "router": Router,
    "prefill-leader": Leader,
    "prefill-worker": Worker,
    "decode-leader": Leader,
    "decode-worker": Worker,
}


def serve(role: Worker | Router) -> None:
    """Answer over HTTP until the process is told to end."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            self._reply(role.ready, {"ready": True})

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size)
            self._reply(lambda: role.answer(self.path, json.loads(body)), None)

        def _reply(self, work, usual: dict | None) -> None:
            code, answer = 200, usual
            try:
                done = work()
                answer = usual if usual is not None else done
            except Unavailable as error:
                code, answer = 503, {"error": str(error)}
            except (KeyError, TypeError, ValueError) as error:
                code, answer = 400, {"error": f"{type(error).__name__}: {error}"}
            body = json.dumps(answer).encode() + b"\n"
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, _format: str, *arguments: object) -> None:
            if self.path in ("/generate", "/prefill", "/decode"):
                sys.stdout.write(f"{self.command} {self.path} {arguments[1]}\n")
                sys.stdout.flush()

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    host = environment("POD_IP")
    with Server((host, PORT), Handler) as server:
        sys.stdout.write(f"{sys.argv[1]} listens on {host}:{PORT}\n")
        sys.stdout.flush()
        server.serve_forever()


def main() -> None:
    """Be what the first argument says."""
    if len(sys.argv) != 2 or sys.argv[1] not in ROLES:
        sys.exit(f"usage: serving.py {'|'.join(ROLES)}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    serve(ROLES[sys.argv[1]]())


if __name__ == "__main__":
    main()
