"""Kubeconfig files: what they say, and what is said where they are wrong."""

from __future__ import annotations

import base64
import copy

import pytest
import yaml

from spinney.kube import kubeconfig
from spinney.kube.kubeconfig import BadKubeconfig, Connection

PEM = b"-----BEGIN CERTIFICATE-----\n"
GOOD = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "lab", "cluster": {"server": "https://10.0.0.1:6443/"}}],
    "users": [{"name": "me", "user": {"token": "abc"}}],
    "contexts": [{"name": "work", "context": {"cluster": "lab", "user": "me", "namespace": "ml"}}],
    "current-context": "work",
}


@pytest.fixture
def written(tmp_path):
    def write(document, name="config"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
        return path

    return write


def changed(**changes):
    """Return the good file with a cluster, user or context changed."""
    document = copy.deepcopy(GOOD)
    for key, value in changes.items():
        document[f"{key}s"][0][key].update(value)
    return document


def connection(path, context=""):
    return kubeconfig.read([path]).connection(context)


def fault(path, context=""):
    with pytest.raises(BadKubeconfig) as caught:
        connection(path, context)
    return str(caught.value).replace(str(path), "FILE").replace(str(path.parent), "DIR")


def test_the_current_context_says_where_and_as_whom(written):
    path = written(GOOD)
    assert connection(path) == Connection(
        server="https://10.0.0.1:6443",
        namespace="ml",
        origin=f"context work of {path}",
        token="abc",
    )


def test_several_files_are_read_as_one_and_the_first_wins(written):
    first = written({"clusters": GOOD["clusters"], "current-context": "work"}, "one")
    second = written(changed(cluster={"server": "https://10.0.0.2"}), "two")
    found = kubeconfig.read([first, second]).connection()
    assert (found.server, found.token, found.namespace) == ("https://10.0.0.1:6443", "abc", "ml")


def test_files_that_are_not_there_are_passed_over_only_in_a_list(written, tmp_path):
    missing = tmp_path / "missing"
    assert kubeconfig.read([missing, written(GOOD)], must_exist=False).connection().token == "abc"
    with pytest.raises(BadKubeconfig, match="missing: there is no such file"):
        kubeconfig.read([missing])


def test_another_context_can_be_asked_for(written):
    document = copy.deepcopy(GOOD)
    document["contexts"].append({"name": "other", "context": {"cluster": "lab"}})
    found = connection(written(document), "other")
    assert (found.namespace, found.token) == ("default", "")


def test_files_are_relative_to_the_file_that_names_them(written, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ca.crt").write_bytes(PEM)
    path = written(
        changed(
            cluster={"certificate-authority": "ca.crt"},
            user={"tokenFile": "../token", "token": None},
        ),
        "sub/config",
    )
    found = connection(path)
    assert found.authority == PEM
    assert found.token_file == str(tmp_path / "sub" / "../token")


def test_data_stands_before_files(written):
    data = base64.b64encode(PEM).decode()
    given = {"certificate-authority-data": data, "certificate-authority": "nowhere"}
    assert connection(written(changed(cluster=given))).authority == PEM


def test_a_plugin_is_read_with_all_it_needs(written, tmp_path):
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./get-token",
        "args": ["--region", "eu"],
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
        "installHint": "install it",
    }
    path = written(changed(user={"token": None, "exec": plugin}))
    assert connection(path).exec == kubeconfig.ExecPlugin(
        api_version="client.authentication.k8s.io/v1",
        command=str(tmp_path / "get-token"),
        arguments=("--region", "eu"),
        environment={"A": "b"},
        interactive_mode="Never",
        provide_cluster_info=True,
        install_hint="install it",
        place=f"{path}: users[0].user.exec",
    )


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}
FAULTS = {
    "no server": (
        changed(cluster={"server": None}),
        "clusters[0].cluster.server: is not set: it must be such as https://127.0.0.1:7443",
    ),
    "no scheme": (
        changed(cluster={"server": "10.0.0.1"}),
        'clusters[0].cluster.server: must begin with https:// or http://, found "10.0.0.1"',
    ),
    "a proxy": (
        changed(cluster={"proxy-url": "http://proxy"}),
        "clusters[0].cluster.proxy-url: is not supported: reach the server without a proxy",
    ),
    "verified and not": (
        changed(cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": "QQ=="}),
        "clusters[0].cluster.insecure-skip-tls-verify: must not be given together with "
        "certificate-authority",
    ),
    "no base64": (
        changed(cluster={"certificate-authority-data": "%"}),
        "clusters[0].cluster.certificate-authority-data: is not base64: Only base64 data is "
        "allowed",
    ),
    "no file": (
        changed(cluster={"certificate-authority": "ca.crt"}),
        "clusters[0].cluster.certificate-authority: DIR/ca.crt cannot be read: No such file or "
        "directory",
    ),
    "half a pair": (
        changed(user={"client-certificate-data": "QQ=="}),
        "users[0].user.client-key: is not set: certificate and key must be given together",
    ),
    "an old plugin": (
        changed(user={"auth-provider": {"name": "gcp"}}),
        "users[0].user.auth-provider: is not supported, as in kubectl since 1.26: use exec",
    ),
    "a plugin of another version": (
        changed(user={"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
        "users[0].user.exec.apiVersion: must be client.authentication.k8s.io/v1, found "
        '"client.authentication.k8s.io/v1alpha1"',
    ),
    "a plugin without a command": (
        changed(user={"exec": {**EXEC, "command": ""}}),
        "users[0].user.exec.command: is not set",
    ),
    "an argument that is no string": (
        changed(user={"exec": {**EXEC, "args": ["a", 1]}}),
        "users[0].user.exec.args[1]: must be a string, found 1",
    ),
    "a user that is not there": (
        changed(context={"user": "you"}),
        'contexts[0].context.user: there is no user "you"; there are: me',
    ),
    "no cluster": (
        changed(context={"cluster": None}),
        "contexts[0].context.cluster: is not set; there are: lab",
    ),
    "a token that is no string": (
        changed(user={"token": 5}),
        "users[0].user.token: must be a string, found 5",
    ),
    "a list in place of an object": (
        {**GOOD, "users": [[]]},
        "users[0]: must be an object, found a list",
    ),
    "another kind": ({"kind": "Pod", "apiVersion": "v1"}, "kind: must be Config of v1"),
    "no context": (
        {**GOOD, "current-context": ""},
        "current-context: is not set: choose one with --context; there are: work",
    ),
    "text": ("hello", "must be an object, found a string"),
    "broken YAML": ("a: [", "line 2: a value is expected here"),
    "a key twice": ("kind: Config\nusers: []\nusers: []\n", "line 3: users: Duplicate field"),
    "nothing": ("", "current-context: is not set"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_file_and_field(written, name):
    document, told = FAULTS[name]
    said = fault(written(document))
    assert said.startswith(f"FILE: {told}")


def test_a_context_that_is_not_there_is_told_with_those_that_are(written):
    told = 'FILE: contexts: there is no context "x"; there are: work'
    assert fault(written(GOOD), "x") == told


@pytest.mark.parametrize("secret", ["token", "password"])
def test_secrets_are_never_repeated(written, secret):
    path = written(changed(user={secret: ["hunter2"]}))
    assert "hunter2" not in fault(path)
