"""Certificates: what clients believe, how long, and when a new one is made."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from spinney.app import pki

NOW = datetime.now(UTC).replace(microsecond=0)


def server_certificate(folder):
    return x509.load_pem_x509_certificate((folder / "server.pem").read_bytes())


def handshake(certificates, name):
    """Return how a client that believes the authority alone is answered under a name."""
    here, there = socket.socketpair()
    with here, there:
        server = pki.server_context(certificates)

        def serve():
            with there, contextlib.suppress(OSError):
                server.wrap_socket(there, server_side=True).close()

        thread = threading.Thread(target=serve)
        thread.start()
        client = ssl.create_default_context(cadata=certificates.authority.decode())
        try:
            with client.wrap_socket(here, server_hostname=name) as secured:
                return secured.version()
        except ssl.SSLError as error:
            return error.verify_message
        finally:
            here.close()
            thread.join()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_a_client_believes_the_server_under_its_loopback_names(tmp_path, name):
    assert handshake(pki.prepare(tmp_path / "pki", (), NOW), name) == "TLSv1.3"


def test_a_client_does_not_believe_it_under_another_name(tmp_path):
    said = handshake(pki.prepare(tmp_path / "pki", (), NOW), "gpu-box")
    assert said == "Hostname mismatch, certificate is not valid for 'gpu-box'."


def test_a_host_it_listens_on_is_a_name_of_it_and_loopback_still_is(tmp_path):
    pki.prepare(tmp_path, (), NOW)
    certificates = pki.prepare(tmp_path, ("gpu-box", "192.0.2.7"), NOW)
    for name in ("gpu-box", "192.0.2.7", "localhost"):
        assert handshake(certificates, name) == "TLSv1.3"


def test_keys_are_for_their_owner_alone(tmp_path):
    pki.prepare(tmp_path / "pki", (), NOW)
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "pki").iterdir()}
    assert modes == {"ca.pem": 0o600, "ca.crt": 0o644, "server.pem": 0o600}
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700


def test_what_is_there_and_good_is_kept(tmp_path):
    pki.prepare(tmp_path, ("gpu-box",), NOW)
    before = {file.name: (file.read_bytes(), file.stat().st_ino) for file in tmp_path.iterdir()}
    pki.prepare(tmp_path, (), NOW + timedelta(days=300))
    assert before == {
        file.name: (file.read_bytes(), file.stat().st_ino) for file in tmp_path.iterdir()
    }


def test_a_server_certificate_near_its_end_is_renewed_under_the_same_authority(tmp_path):
    first = pki.prepare(tmp_path, (), NOW)
    old = server_certificate(tmp_path)
    just_before = first.renew_at - timedelta(seconds=1)
    assert pki.prepare(tmp_path, (), just_before) == first
    second = pki.prepare(tmp_path, (), first.renew_at)
    assert second.authority == first.authority
    assert server_certificate(tmp_path).serial_number != old.serial_number
    assert second.renew_at - first.renew_at == first.renew_at - NOW


def test_renewal_is_long_before_the_end(tmp_path):
    certificates = pki.prepare(tmp_path, (), NOW)
    end = server_certificate(tmp_path).not_valid_after_utc
    assert end - certificates.renew_at == pki.SERVER_RENEWED_BEFORE_END


@pytest.mark.parametrize("days", [30, 90])
def test_no_server_certificate_outlives_its_authority(tmp_path, days):
    """At any moment of ten years, however often it was renewed."""
    now = NOW
    while now < NOW + timedelta(days=3660):
        pki.prepare(tmp_path, (), now)
        authority = x509.load_pem_x509_certificate((tmp_path / "ca.crt").read_bytes())
        server = server_certificate(tmp_path)
        server.verify_directly_issued_by(authority)
        assert server.not_valid_before_utc <= now < server.not_valid_after_utc
        assert server.not_valid_after_utc < authority.not_valid_after_utc
        now += timedelta(days=days)


@pytest.mark.parametrize("name", ["ca.pem", "server.pem"])
@pytest.mark.parametrize("damage", [b"", b"not PEM", None])
def test_what_is_damaged_or_gone_is_made_anew(tmp_path, name, damage):
    pki.prepare(tmp_path, (), NOW)
    if damage is None:
        os.unlink(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(damage)
    assert handshake(pki.prepare(tmp_path, (), NOW), "localhost") == "TLSv1.3"


def test_a_server_certificate_of_another_authority_is_not_kept(tmp_path):
    pki.prepare(tmp_path / "one", (), NOW)
    pki.prepare(tmp_path / "two", (), NOW)
    (tmp_path / "one" / "server.pem").write_bytes((tmp_path / "two" / "server.pem").read_bytes())
    assert handshake(pki.prepare(tmp_path / "one", (), NOW), "localhost") == "TLSv1.3"


def test_a_clock_that_was_ahead_leaves_nothing_that_is_not_valid_yet(tmp_path):
    pki.prepare(tmp_path, (), NOW + timedelta(days=30))
    pki.prepare(tmp_path, (), NOW)
    assert server_certificate(tmp_path).not_valid_before_utc <= NOW
