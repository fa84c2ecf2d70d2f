"""Images: on a local node an image is only a name, and a settings file may give it a command.

[images]
"vllm/vllm-openai" = ["vllm", "serve"]
"example/router:1" = ["python", "router.py"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from spinney.nodes.agent.lacking import NO_COMMAND, Lacking

FILE_NAME: Final = "spinney.toml"


class Images:
    """The commands of images, read from files when they are asked for."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        """Ask these files, the last of them first; one that is not there says nothing."""
        self._files = tuple(files)

    @property
    def told_file(self) -> str:
        """The file people are told to write to."""
        return str(self._files[-1]) if self._files else FILE_NAME

    def command(self, image: str) -> tuple[str, ...] | None:
        """Return the command of an image, by its whole name or without its tag.

        None where no file knows it; raises Lacking where a file is not what it should be.
        """
        for file in reversed(self._files):
            table = _table(file)
            for name in (image, repository(image)):
                if name in table:
                    return _words(table[name], name, file)
        return None


def _table(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            table = tomllib.load(opened).get("images", {})
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Lacking(f"{file} cannot be read: {error}", NO_COMMAND) from error
    if not isinstance(table, dict):
        raise Lacking(f"{file}: images must be a table, such as [images]", NO_COMMAND)
    return table


def _words(found: object, name: str, file: Path) -> tuple[str, ...]:
    if isinstance(found, list) and found and all(isinstance(word, str) for word in found):
        return tuple(found)
    raise Lacking(
        f'{file}: images."{name}" must be a list of words, such as ["python", "serve.py"]',
        NO_COMMAND,
    )


def repository(image: str) -> str:
    """Return an image without tag and digest."""
    plain = image.partition("@")[0]
    head, slash, last = plain.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"
