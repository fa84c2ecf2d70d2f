"""A running server: `spinney up` in a folder of its own, ended with the tests, or another's."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
import sys
import urllib.parse
from pathlib import Path

import yaml

from spinney.app import credentials
from spinney.app.datafolder import DataFolder

SECONDS_MAX = 30


class Live:
    """A server to ask things, known by its kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        """Read who it is."""
        self.kubeconfig = kubeconfig
        said = yaml.safe_load(kubeconfig.read_text())
        self.url = said["clusters"][0]["cluster"]["server"]
        self.token = said["users"][0]["user"]["token"]
        authority = base64.b64decode(said["clusters"][0]["cluster"]["certificate-authority-data"])
        self.tls = ssl.create_default_context(cadata=authority.decode())

    def end(self) -> int:
        """End it where it was begun here, and return its exit code."""
        return 0

    def in_namespace(self, namespace: str, file: Path) -> Path:
        """Write a kubeconfig whose context begins in a namespace."""
        said = yaml.safe_load(self.kubeconfig.read_text())
        for context in said["contexts"]:
            context["context"]["namespace"] = namespace
        file.write_text(yaml.safe_dump(said))
        return file

    def ask(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Send one request, and return the code and the body of its answer."""
        address = urllib.parse.urlsplit(self.url)
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=self.tls, timeout=SECONDS_MAX
        )
        try:
            sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
            connection.request(method, target, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def create_namespace(self, name: str) -> None:
        """Create a namespace for a test."""
        document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        code, answer = self.ask(
            "POST",
            "/api/v1/namespaces",
            json.dumps(document).encode(),
            {"Content-Type": "application/json"},
        )
        assert code == 201, answer.decode()


class Up(Live):
    """One `spinney up` in a folder of its own."""

    folder: Path | None = None
    """Where it is started; its own folder, unless it must be elsewhere."""

    def __init__(self, folder: Path) -> None:
        """Start it, and wait until it answers."""
        self._log = (folder / "log").open("w+")
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self.command(folder / "data")],
            cwd=self.folder or folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        kubeconfig = folder / "data" / "kubeconfig"
        if not first or not kubeconfig.exists():
            self._log.seek(0)
            said = self._log.read()
            raise AssertionError(f"the server did not start, exit code {self.end()}:\n{said}")
        super().__init__(kubeconfig)
        self._own_log = folder / "data" / "log"

    @staticmethod
    def command(data: Path) -> list[str]:
        """Return what Python runs, on a data folder."""
        return [
            *("spinney", "up", "--data", str(data)),
            *("--listen", "127.0.0.1:0", "--durability", "memory", "--nodes", "none"),
        ]

    def log(self) -> str:
        """Return what the server wrote about itself."""
        return self._own_log.read_text()

    def end(self) -> int:
        """End the server as a person would, and return its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(SECONDS_MAX)
        finally:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._log.close()


class Manned(Up):
    """A server like it, on whose node `bench` pods run."""

    folder = Path(__file__).resolve().parents[2]

    @staticmethod
    def command(data: Path) -> list[str]:
        """Return what Python runs, on a data folder."""
        return ["tests.conformance.manned", str(data)]

    @property
    def read_only(self) -> str:
        """The token of who may only read."""
        found = credentials.read(DataFolder(self.kubeconfig.parent).tokens)
        assert found is not None
        return found.read_only
