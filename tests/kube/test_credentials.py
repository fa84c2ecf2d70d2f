"""Credentials: token files that change, and plugins that are run."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from spinney.kube.credentials import Credentials
from spinney.kube.kubeconfig import BadKubeconfig, Connection, ExecPlugin

VERSION = "client.authentication.k8s.io/v1"
START = datetime(2026, 11, 19, 8, tzinfo=UTC)


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.time = START

    def now(self):
        return self.time

    def elapsed(self):
        return self.time - START

    async def sleep(self, duration):
        self.time += duration


def ran(credentials):
    return asyncio.run(credentials.current())


def plugin(tmp_path, body, **given):
    """Return credentials of a plugin that is a Python script, which counts its runs."""
    script = tmp_path / "plugin.py"
    counting = (
        "import json, os, pathlib, sys\n"
        f"count = pathlib.Path({str(tmp_path / 'count')!r})\n"
        "count.write_text(str(int(count.read_text()) + 1) if count.exists() else '1')\n"
    )
    script.write_text(counting + body)
    made = ExecPlugin(
        api_version=VERSION,
        command=sys.executable,
        arguments=(str(script),),
        place="config: users[0].user.exec",
        **given,
    )
    clock = Clock()
    connection = Connection(server="https://10.0.0.1", exec=made)
    return Credentials(connection, clock), clock


def printing(**status):
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"print(json.dumps({answer!r}))\n"


def test_a_plugin_is_run_once_until_its_credential_ends(tmp_path):
    body = printing(token="t", expirationTimestamp="2026-11-19T09:00:00Z")
    credentials, clock = plugin(tmp_path, body)
    for minutes, count in ((0, 1), (59, 1), (60, 2)):
        clock.time = START + timedelta(minutes=minutes)
        assert ran(credentials).token == "t"
        assert (tmp_path / "count").read_text() == str(count)


def test_a_refused_credential_is_asked_for_again(tmp_path):
    credentials, _ = plugin(tmp_path, printing(token="t"))
    assert credentials.can_be_renewed
    ran(credentials)
    ran(credentials)
    credentials.forget()
    ran(credentials)
    assert (tmp_path / "count").read_text() == "2"


def test_a_plugin_is_told_what_is_asked_of_it(tmp_path):
    body = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = json.dumps([info, os.environ['A']])\n"
        f"print(json.dumps({{'apiVersion': {VERSION!r}, 'kind': 'ExecCredential', "
        "'status': {'token': token}}))\n"
    )
    credentials, _ = plugin(
        tmp_path, body, environment={"A": "b"}, provide_cluster_info=True, interactive_mode="Never"
    )
    assert json.loads(ran(credentials).token) == [
        {
            "apiVersion": VERSION,
            "kind": "ExecCredential",
            "spec": {"interactive": False, "cluster": {"server": "https://10.0.0.1"}},
        },
        "b",
    ]


def test_a_plugin_may_give_a_certificate(tmp_path):
    body = printing(clientCertificateData="CERT", clientKeyData="KEY")
    found = ran(plugin(tmp_path, body)[0])
    assert (found.certificate, found.key, found.token) == (b"CERT", b"KEY", "")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("sys.exit(3)", "ended with exit code 3"),
        ("print('no')", "printed is not JSON"),
        ("print('{}')", "printed must be an ExecCredential"),
        (printing(), "status: must give a token, or certificate and key"),
        (printing(token="t", expirationTimestamp="soon"), "status.expirationTimestamp: must be"),
        (printing(token="t").replace("/v1", "/v2"), f"apiVersion: must be {VERSION}"),
    ],
)
def test_a_plugin_that_fails_is_told_of(tmp_path, body, told):
    with pytest.raises(BadKubeconfig) as caught:
        ran(plugin(tmp_path, body)[0])
    assert told in str(caught.value)
    assert str(caught.value).startswith("config: users[0].user.exec: ")


def test_a_plugin_that_is_not_there_is_told_of_with_its_hint():
    made = ExecPlugin(
        api_version=VERSION, command="/nowhere/x", install_hint="get it from us", place="config"
    )
    connection = Connection(server="https://10.0.0.1", exec=made)
    with pytest.raises(BadKubeconfig) as caught:
        ran(Credentials(connection, Clock()))
    told = "config: /nowhere/x cannot be run: No such file or directory: get it from us"
    assert str(caught.value) == told


def test_a_token_in_a_file_is_read_again_after_a_minute(tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n")
    clock = Clock()
    credentials = Credentials(Connection(server="https://x", token_file=str(file)), clock)
    assert ran(credentials).token == "one"
    file.write_text("two\n")
    assert ran(credentials).token == "one"
    clock.time += timedelta(minutes=1)
    assert ran(credentials).token == "two"


def test_a_token_file_that_is_gone_is_told_of(tmp_path):
    connection = Connection(server="https://x", token_file=str(tmp_path / "gone"))
    with pytest.raises(BadKubeconfig, match="gone: cannot be read: No such file or directory"):
        ran(Credentials(connection, Clock()))


def test_who_asks_is_said_in_headers():
    connection = Connection(
        server="https://x", token="t", impersonate="eve", impersonate_groups=("a", "b")
    )
    credentials = Credentials(connection, Clock())
    assert credentials.headers(ran(credentials)) == [
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "eve"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
    ]
    basic = Credentials(Connection(server="https://x", username="u", password="p"), Clock())
    assert basic.headers(ran(basic)) == [("Authorization", "Basic dTpw")]
