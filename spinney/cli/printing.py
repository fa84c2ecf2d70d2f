"""Documents as text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TextIO

import msgspec
import yaml

from spinney.meta.documents import Document, Json

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def one_line(text: str) -> str:
    """Return a text as a line of its own, in which nothing steers the terminal that shows it."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _Dumper(yaml.CSafeDumper):
    """Writes plain block YAML, with no anchors for what stands in two places."""

    def ignore_aliases(self, _data: object) -> bool:
        """Write everything out."""
        return True


def _write_text(dumper: yaml.CSafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)


def yaml_text(document: Json) -> str:
    """Return a document as YAML, its fields in their order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1)


def json_text(document: Json) -> str:
    """Return a document as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def write_documents(documents: Iterable[Document], form: str, out: TextIO = sys.stdout) -> None:
    """Write documents: in YAML with a line between them, in JSON as a List where there are more."""
    if form == "yaml":
        for index, document in enumerate(documents):
            out.write(("---\n" if index else "") + yaml_text(document))
        return
    found = list(documents)
    if len(found) == 1:
        out.write(json_text(found[0]))
        return
    items: list[Json] = [*found]
    out.write(json_text({"apiVersion": "v1", "kind": "List", "items": items}))
