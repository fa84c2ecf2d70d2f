"""Client libraries ask running pods: logs, commands, ports, usage."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import itertools
import threading

import kr8s.asyncio
import kr8s.asyncio.objects
import pytest
import yaml
from kubernetes import client, config, watch
from kubernetes.stream import portforward, stream

from tests.conformance.cases import MANIFESTS

SECONDS_MAX = 30
PODS = list(yaml.safe_load_all((MANIFESTS / "running-pods.yaml").read_text()))
TALKER = PODS[0]
_COUNT = itertools.count()


@pytest.fixture
def api(manned):
    """A client of its own a test: exec changes the client it is given."""
    made = config.new_client_from_config(str(manned.kubeconfig))
    with made:
        yield made


@pytest.fixture
def core(api):
    return client.CoreV1Api(api)


@pytest.fixture
def namespace(manned, core):
    """A namespace where a pod runs that prints three lines."""
    name = f"clients-{next(_COUNT)}"
    manned.create_namespace(name)
    core.create_namespaced_pod(name, TALKER)
    events = watch.Watch()
    for event in events.stream(core.list_namespaced_pod, name, timeout_seconds=SECONDS_MAX):
        if event["object"].status.phase == "Running":
            events.stop()
    return name


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"served")

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def port():
    """The port of an HTTP server in the pod."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@contextlib.contextmanager
def executed(core, namespace, *command, **options):
    """Run a command, and hang up at the end: the library does not where the server does first."""
    chosen = {"stdout": True, "stderr": True, "stdin": False, "tty": False, **options}
    talk = stream(
        core.connect_get_namespaced_pod_exec,
        "talker",
        namespace,
        command=[*command],
        _preload_content=False,
        **chosen,
    )
    try:
        yield talk
    finally:
        talk.close()
        talk.sock.shutdown()


def test_the_official_client_reads_and_follows_logs(core, namespace):
    assert core.read_namespaced_pod_log("talker", namespace, tail_lines=2) == "line 2\nline 3\n"
    following = watch.Watch()
    lines = []
    for line in following.stream(core.read_namespaced_pod_log, "talker", namespace):
        lines.append(line)
        if len(lines) == 3:
            following.stop()
            break
    assert lines == ["line 1", "line 2", "line 3"]


def test_the_official_client_runs_commands(core, namespace):
    with executed(
        core, namespace, "sh", "-c", "read said; echo $said; echo wrong >&2; exit 3", stdin=True
    ) as talk:
        talk.write_stdin("typed\n")
        talk.run_forever(timeout=SECONDS_MAX)
        assert (talk.read_stdout(), talk.read_stderr()) == ("typed\n", "wrong\n")
        assert talk.returncode == 3


def test_the_official_client_has_a_terminal(core, namespace):
    with executed(
        core, namespace, "sh", "-c", "test -t 1 && echo yes", stdin=True, tty=True
    ) as talk:
        talk.run_forever(timeout=SECONDS_MAX)
        assert talk.read_stdout() == "yes\r\n"


def test_the_official_client_forwards_ports(core, namespace, port):
    forwarded = portforward(
        core.connect_get_namespaced_pod_portforward, "talker", namespace, ports=str(port)
    )
    with contextlib.closing(forwarded.socket(port)) as connection:
        connection.settimeout(SECONDS_MAX)
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = b""
        while part := connection.recv(4096):
            answer += part
    assert answer.endswith(b"\r\n\r\nserved")
    assert forwarded.error(port) is None
    forwarded.websocket.shutdown()


def test_the_official_client_reads_usage(api, namespace):
    custom = client.CustomObjectsApi(api)
    found = custom.list_namespaced_custom_object("metrics.k8s.io", "v1beta1", namespace, "pods")
    assert [item["metadata"]["name"] for item in found["items"]] == ["talker"]
    assert found["items"][0]["containers"][0]["usage"] == {"cpu": "12m", "memory": "34Mi"}


def test_kr8s_asks_running_pods(manned, namespace, port):
    async def main():
        api = await kr8s.asyncio.api(kubeconfig=str(manned.kubeconfig), namespace=namespace)
        pod = await kr8s.asyncio.objects.Pod.get("talker", namespace=namespace, api=api)
        assert [line async for line in pod.logs()] == ["line 1", "line 2", "line 3"]
        done = await pod.exec(["sh", "-c", "echo told; exit 4"], check=False)
        assert (done.stdout, done.returncode) == (b"told\n", 4)
        async with pod.portforward(remote_port=port, local_port="auto") as local:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            assert (await reader.read()).endswith(b"\r\n\r\nserved")
            writer.close()
            await writer.wait_closed()
        await api._session.aclose()

    asyncio.run(main())
