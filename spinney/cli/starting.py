"""`spinney up`: starts the control plane of a data folder, here or detached."""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

import msgspec

import spinney
from spinney.app import listeners
from spinney.app.datafolder import DataFolder, Holder
from spinney.cli import failing, folders, screen
from spinney.cli.screen import BOLD, Screen
from spinney.cli.usage import Usage
from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record
from spinney.nodes.fleet import shapes
from spinney.nodes.fleet.shapes import Nodes

DETACHED_START_SECONDS = 120
LOG_LINES_SHOWN = 15


class Report(Record):
    """What a detached process tells the one that started it."""

    holder: Holder | None = None
    """Set when it answers."""

    fault: str = ""
    code: int = 0


class Failed(SpinneyError):
    """The user or us: a detached process did not come up; says what it said."""


def run(arguments: argparse.Namespace) -> int:
    """Start; returns the exit code."""
    host, port = _address(arguments.listen)
    nodes = _nodes(arguments.nodes)
    folder = folders.data(arguments)
    output = screen.for_call(arguments)
    if not listeners.is_loopback(host) and arguments.report_to is None:
        output.warn(
            f"listening beyond this machine: whoever has the token of {folder.kubeconfig} "
            "may change everything."
        )
    if arguments.detach:
        return _start_detached(arguments, folder, output)
    return _serve(arguments, folder, output, host, port, nodes)


def _nodes(texts: Sequence[str]) -> Nodes:
    try:
        return shapes.parse(texts)
    except shapes.BadShape as error:
        raise Usage(str(error)) from error


def _address(text: str) -> tuple[str, int]:
    host, colon, number = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and number.isdigit() and number.isascii() and int(number) < 65536):
        raise Usage(f'--listen "{text}": must be HOST:PORT, such as 127.0.0.1:7443 or [::1]:0')
    return "127.0.0.1" if host == "localhost" else host, int(number)


def _serve(
    arguments: argparse.Namespace,
    folder: DataFolder,
    output: Screen,
    host: str,
    port: int,
    nodes: Nodes,
) -> int:
    gc.disable()  # there is no garbage to find before the world is loaded, which turns it on

    from spinney.app import process
    from spinney.app.embedded import Embedded, Options

    def on_up(world: Embedded) -> None:
        if arguments.report_to is not None:
            os.chdir(folder.root)
            _report(arguments.report_to, Report(holder=world.holder))
            return
        with contextlib.suppress(BrokenPipeError):
            _tell(arguments, folder, world.holder, output)
        output.aside.write("Ctrl-C ends it.\n")
        output.aside.flush()

    def on_stopping() -> None:
        if arguments.report_to is None:
            output.aside.write("\nstopping (again to end at once)\n")
            output.aside.flush()

    options = Options(host=host, port=port, durability=arguments.durability, nodes=nodes)
    if arguments.report_to is None:
        return process.serve(folder, options, on_up, on_stopping)
    try:
        return process.serve(folder, options, on_up, on_stopping)
    except SpinneyError as error:
        code = failing.exit_code(error)
        _report(arguments.report_to, Report(fault=failing.text(error), code=code))
        return code


def _report(descriptor: int, report: Report) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(descriptor, msgspec.json.encode(report))
    os.close(descriptor)


def _start_detached(arguments: argparse.Namespace, folder: DataFolder, output: Screen) -> int:
    """Start another process in a session of its own, and wait until it answers."""
    folder.make()
    reading, writing = os.pipe()
    with folder.explained():
        log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    started = subprocess.Popen(
        [
            sys.executable,
            *_python_options(),
            "-m",
            "spinney",
            *("--data", os.fspath(folder.root)),
            "up",
            *("--listen", arguments.listen),
            *("--durability", arguments.durability),
            *(word for text in arguments.nodes for word in ("--nodes", text)),
            *("--report-to", str(writing)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(writing,),
        start_new_session=True,
    )
    os.close(writing)
    os.close(log)

    from spinney.cli import probing

    try:
        report = _heard(reading)
        if report.holder is not None:
            probing.wait_ready(report.holder.address, folder.pki / "ca.crt")
    except (KeyboardInterrupt, SpinneyError):
        started.send_signal(signal.SIGTERM)
        raise
    finally:
        os.close(reading)
    if report.holder is None:
        code = started.wait()
        output.note(report.fault or _last_words(folder, code))
        return report.code or failing.NO
    started.returncode = 0  # it outlives this process, which Popen would warn of
    _tell(arguments, folder, report.holder, output)
    return 0


def _python_options() -> list[str]:
    """Return what makes Python find this very package, wherever it was started."""
    return ["-P"] if sys.flags.safe_path else []


def _heard(descriptor: int) -> Report:
    """Return what a detached process reports, an empty report where it ended without."""
    parts = []
    while True:
        ready, _, _ = select.select([descriptor], [], [], DETACHED_START_SECONDS)
        if not ready:
            raise Failed(f"it did not answer within {DETACHED_START_SECONDS} s: see its log")
        part = os.read(descriptor, 65536)
        if not part:
            break
        parts.append(part)
    return msgspec.json.decode(b"".join(parts), type=Report) if parts else Report()


def _last_words(folder: DataFolder, code: int) -> str:
    with contextlib.suppress(OSError):
        lines = folder.log.read_text("utf-8", "replace").splitlines()[-LOG_LINES_SHOWN:]
        told = "\n".join(f"  {line}" for line in lines)
        return f"spinney: it ended with {code} before it answered; the end of {folder.log}:\n{told}"
    return f"spinney: it ended with {code} before it answered"


def _tell(
    arguments: argparse.Namespace, folder: DataFolder, holder: Holder, output: Screen
) -> None:
    """Print where things are, and what to try."""
    command = f"spinney --data {arguments.data}" if arguments.data else "spinney"
    kept = f"durability {holder.durability}"
    if holder.durability == "memory":
        kept = "kept in memory: gone when it ends"
    up = output.painted(f"Spinney {spinney.__version__} is up at {holder.address}", BOLD)
    example = "examples/serving.yaml" if os.path.exists("examples/serving.yaml") else "FILE"
    for line in (
        f"{up} (process {holder.pid})",
        f"  data         {folder.root} ({kept})",
        f"  kubeconfig   {folder.kubeconfig}",
        f"  log          {folder.log}",
        f"  nodes        {_told_nodes(holder.nodes)}",
        "Try:",
        f"  {command} apply -f {example}   # then: tree -w, why, logs -f serving",
        f"  {command} tree -A   # what there is, where it runs, and why something does not",
        f"  KUBECONFIG=$({command} kubeconfig) kubectl get podcliquesets -A",
        f"  {command} down",
    ):
        output.line(line)


def _told_nodes(texts: Sequence[str]) -> str:
    if texts and texts != ("none",):
        return " ".join(texts)
    return "none: pods are kept and shown, nothing runs them"
