"""The private certificate authority of a data folder, and the server certificate it signs.

`ca.pem` and `server.pem` each hold a key and its certificate, so that the two change in one step;
`ca.crt` is the authority alone, for clients. What is there and still good is kept. The server
certificate is made anew when it is near its end, when it does not name every host the server is
reached by, or when it is not of this authority; the authority itself once in nine years, and then
clients need the new kubeconfig.
"""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spinney.app import files
from spinney.meta.records import Record

CA_LIFE = timedelta(days=3650)
CA_RENEWED_BEFORE_END = timedelta(days=400)
"""More than a server certificate lives, so that none outlives its authority."""

SERVER_LIFE = timedelta(days=365)
SERVER_RENEWED_BEFORE_END = timedelta(days=60)
CLOCK_SKEW = timedelta(minutes=10)
"""How far a certificate reaches back, for machines whose clocks are behind."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Certificates(Record):
    """What a server needs to prove who it is, and its clients to believe it."""

    authority: bytes
    """The certificate of the authority, in PEM."""

    server_file: str
    """Key and certificate of the server, in one PEM file."""

    renew_at: datetime
    """When `prepare` will make a new server certificate."""


class _Pair:
    """A certificate with its key."""

    __slots__ = ("certificate", "key")

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.key = key
        self.certificate = certificate

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def pem(self) -> bytes:
        key = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return key + self.certificate_pem


def prepare(folder: Path, hosts: Iterable[str], now: datetime) -> Certificates:
    """Return the certificates of a folder; makes those that are missing, damaged or near their end.

    `hosts` are names and addresses, beyond loopback, that the server is reached by.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    wanted = tuple(dict.fromkeys((*LOOPBACK, *hosts)))
    authority = _read(folder / "ca.pem")
    if authority is None or authority.certificate.not_valid_after_utc - CA_RENEWED_BEFORE_END < now:
        authority = _new_authority(now)
        files.write(folder / "ca.pem", authority.pem)
    files.write_if_changed(folder / "ca.crt", authority.certificate_pem, files.PUBLIC)
    server = _read(folder / "server.pem")
    if server is None or not _is_good(server, authority, wanted, now):
        server = _new_server(authority, wanted, now)
        files.write(folder / "server.pem", server.pem)
    return Certificates(
        authority=authority.certificate_pem,
        server_file=str(folder / "server.pem"),
        renew_at=server.certificate.not_valid_after_utc - SERVER_RENEWED_BEFORE_END,
    )


def server_context(certificates: Certificates) -> ssl.SSLContext:
    """Return the TLS settings of a server; `load_cert_chain` on it takes a renewed certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificates.server_file)
    return context


def _read(path: Path) -> _Pair | None:
    """Return what a file holds, None where it is missing or damaged."""
    with contextlib.suppress(FileNotFoundError, ValueError, TypeError):
        data = path.read_bytes()
        key = serialization.load_pem_private_key(data, password=None)
        certificate = x509.load_pem_x509_certificate(data)
        if (
            isinstance(key, ec.EllipticCurvePrivateKey)
            and key.public_key() == certificate.public_key()
        ):
            return _Pair(key, certificate)
    return None


def _is_good(server: _Pair, authority: _Pair, wanted: Sequence[str], now: datetime) -> bool:
    try:
        server.certificate.verify_directly_issued_by(authority.certificate)
        names = server.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    is_fresh = now < server.certificate.not_valid_after_utc - SERVER_RENEWED_BEFORE_END
    is_begun = server.certificate.not_valid_before_utc <= now
    return is_fresh and is_begun and set(map(_name, wanted)) <= set(names.value)


def _new_authority(now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "spinney")])
    certificate = (
        _begun(name, name, key, now, CA_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _Pair(key, certificate)


def _new_server(authority: _Pair, hosts: Sequence[str], now: datetime) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "spinney-server")])
    issuer = authority.key.public_key()
    certificate = (
        _begun(name, authority.certificate.subject, key, now, SERVER_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(map(_name, hosts))), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return _Pair(key, certificate)


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    """Return what every certificate begins with."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
