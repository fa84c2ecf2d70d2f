"""The embedded world in this process: what it serves, renews, and gives back when it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from cryptography import x509

from spinney.app import embedded, listeners, pki
from spinney.app.datafolder import DataFolder, Held
from spinney.app.embedded import Options
from spinney.app.listeners import BadAddress, PortTaken
from spinney.meta.documents import string_at
from spinney.nodes.fleet import shapes
from spinney.ports import Identity
from spinney.testing.clock import ManualClock
from spinney.testing.entropy import SeededEntropy

MEMORY = Options(port=0, durability="memory")
NOW = datetime.now(UTC).replace(microsecond=0)
ME = Identity(user="me", manager="test")


def within(tmp_path, test, options=MEMORY):
    """Run a test within a world whose clock is moved by hand."""

    async def run():
        clock = ManualClock(NOW)
        folder = DataFolder(tmp_path / "data")
        world = await embedded.open_embedded(folder, options, clock, SeededEntropy(1))
        keeping = asyncio.create_task(world.run())
        try:
            await test(world, clock)
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            await world.close()

    asyncio.run(run())


async def serial_number(world):
    """Return the number of the certificate that a new connection is shown, valid or not yet."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    port = int(world.address.rpartition(":")[2])
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname="localhost"
    )
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    await asyncio.sleep(0)
    return x509.load_der_x509_certificate(shown).serial_number


def test_the_certificate_is_renewed_while_it_runs(tmp_path):
    async def test(world, clock):
        first = await serial_number(world)
        await asyncio.sleep(0)
        for _ in range(310):
            clock.advance(timedelta(days=1))
            for _ in range(5):
                await asyncio.sleep(0)
        assert await serial_number(world) != first
        renewed = x509.load_pem_x509_certificate((world.folder.pki / "server.pem").read_bytes())
        assert renewed.not_valid_after_utc > NOW + pki.SERVER_LIFE

    within(tmp_path, test)


def test_what_was_written_is_there_when_it_is_opened_again(tmp_path):
    options = Options(port=0)

    async def write(world, _clock):
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kept", "namespace": "default"},
        }
        await world.world.writer(ME).create(document)

    async def read(world, _clock):
        kinds = {kind.names.kind: kind for kind in world.world.catalog}
        found = world.world.registry.get(kinds["ConfigMap"], "default", "kept")
        assert string_at(found.document(), ["metadata", "name"]) == "kept"

    within(tmp_path, write, options)
    within(tmp_path, read, options)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1"])
def test_the_kubeconfig_names_an_address_that_this_machine_reaches(tmp_path, host):
    if host == "::1" and not _has_ipv6():
        host = "127.0.0.1"

    async def test(world, _clock):
        config = yaml.safe_load(world.folder.kubeconfig.read_text())
        (cluster,) = config["clusters"]
        assert cluster["cluster"]["server"] == world.address
        assert world.address.startswith("https://[::1]:" if host == "::1" else "https://127.0.0.1:")
        assert world.folder.holder().address == world.address

    within(tmp_path, test, Options(host=host, port=0, durability="memory"))


def _has_ipv6():
    with contextlib.suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False


def test_a_world_open_to_others_has_a_certificate_with_its_names(tmp_path):
    async def test(world, _clock):
        body = (world.folder.pki / "server.pem").read_bytes()
        found = x509.load_pem_x509_certificate(body).extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        )
        assert socket.gethostname() in found.value.get_values_for_type(x509.DNSName)

    within(tmp_path, test, Options(host="0.0.0.0", port=0, durability="memory"))


@pytest.mark.parametrize(
    ("host", "error"),
    [("192.0.2.1", BadAddress), ("no-such-host.invalid", BadAddress), ("127.0.0.1", PortTaken)],
)
def test_a_world_that_cannot_listen_holds_nothing(tmp_path, host, error):
    with socket.create_server(("127.0.0.1", 0)) as taken:

        async def run():
            folder = DataFolder(tmp_path)
            options = Options(host=host, port=taken.getsockname()[1])
            with pytest.raises(error):
                await embedded.open_embedded(folder, options, ManualClock(NOW), SeededEntropy(1))
            assert folder.holder() is None
            assert not folder.kubeconfig.exists()
            world = await embedded.open_embedded(
                folder, Options(port=0), ManualClock(NOW), SeededEntropy(1)
            )
            with pytest.raises(Held):
                await embedded.open_embedded(folder, MEMORY, ManualClock(NOW), SeededEntropy(1))
            await world.close()
            assert folder.holder() is None

        asyncio.run(run())


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("gpu-box", False),
    ],
)
def test_what_only_this_machine_reaches_is_known(host, is_ours):
    assert listeners.is_loopback(host) is is_ours


def test_a_world_is_ready_once_its_nodes_are_there(tmp_path):
    async def test(world, _clock):
        checks = world._grounds.checks
        assert checks["simulated-nodes"]() == "simulated nodes are not all there yet"
        assert checks["scheduler"]() == "the scheduler has not looked at everything yet"
        await world.wait_ready()
        assert [checks[name]() for name in ("simulated-nodes", "scheduler")] == ["", ""]
        kinds = {kind.names.kind: kind for kind in world.world.catalog}
        node = world.world.registry.get(kinds["Node"], "", "sim-2").document()
        assert node["status"]["capacity"]["cpu"] == "4"
        assert world.holder.nodes == ("sim:3,cpu=4",)

    nodes = shapes.parse(["sim:3,cpu=4"])
    within(tmp_path, test, Options(port=0, durability="memory", nodes=nodes))


def test_a_world_without_nodes_leaves_pods_to_others(tmp_path):
    async def test(world, _clock):
        await world.wait_ready()
        assert world._grounds.scheduler is None
        names = [runner.name for runner in world._manager.runners]
        assert "node-loss" not in names
        assert "podcliqueset" in names

    within(tmp_path, test, Options(port=0, durability="memory", nodes=shapes.parse(["none"])))
