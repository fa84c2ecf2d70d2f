"""A cursor walks a document that may be broken, and knows its own path.

An absent value, or one of another type than asked for, reads as None: so rules hold on broken
input, and what the shape check has already told is not told twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spinney.meta import errors
from spinney.meta.documents import Document, Json, is_integer
from spinney.meta.durations import Duration, parse_duration
from spinney.meta.errors import FieldError


class Cursor:
    """One place in a document: its path and its value (None where it is absent)."""

    __slots__ = ("path", "value")

    def __init__(self, value: Json, path: str = "") -> None:
        """Stand at a value."""
        self.value = value
        self.path = path

    def __getitem__(self, key: str) -> Cursor:
        """Step to a field of an object."""
        below = self.value.get(key) if isinstance(self.value, dict) else None
        return Cursor(below, f"{self.path}.{key}" if self.path else key)

    def entry(self, key: str) -> Cursor:
        """Step to an entry of a map; written `labels[key]`."""
        below = self.value.get(key) if isinstance(self.value, dict) else None
        return Cursor(below, f"{self.path}[{key}]")

    def at(self, *steps: str) -> Cursor:
        """Step down several fields at once."""
        here = self
        for step in steps:
            here = here[step]
        return here

    def __iter__(self) -> Iterator[Cursor]:
        """Step through the items of a list; nothing else has any."""
        if isinstance(self.value, list):
            for index, below in enumerate(self.value):
                yield Cursor(below, f"{self.path}[{index}]")

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Step through the entries of a map."""
        if isinstance(self.value, dict):
            for key, below in self.value.items():
                yield key, Cursor(below, f"{self.path}[{key}]")

    def __bool__(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    def string(self) -> str | None:
        """The value, if it is a string."""
        return self.value if isinstance(self.value, str) else None

    def integer(self) -> int | None:
        """The value, if it is an integer."""
        return self.value if is_integer(self.value) else None

    def boolean(self) -> bool | None:
        """The value, if it is true or false."""
        return self.value if isinstance(self.value, bool) else None

    def object(self) -> Document | None:
        """The value, if it is an object."""
        return self.value if isinstance(self.value, dict) else None

    def strings(self) -> tuple[str, ...]:
        """The strings of a list; other items are passed over."""
        return tuple(item.value for item in self if isinstance(item.value, str))

    def duration(self) -> Duration | None:
        """The value, if it is a duration in Go's syntax."""
        if not isinstance(self.value, str):
            return None
        try:
            return parse_duration(self.value)
        except ValueError:
            return None

    def required(self, message: str = "") -> FieldError:
        """Tell that a value must be given here."""
        return FieldError(path=self.path, reason=errors.REQUIRED, message=message)

    def invalid(self, message: str) -> FieldError:
        """Tell what must hold of the value here."""
        return FieldError(path=self.path, reason=errors.INVALID, message=message, found=self.value)

    def ill_typed(self, message: str) -> FieldError:
        """Tell that the value here is of a wrong type."""
        return FieldError(
            path=self.path, reason=errors.TYPE_INVALID, message=message, found=self.value
        )

    def duplicate(self, message: str = "") -> FieldError:
        """Tell that the value here stands elsewhere too and may not."""
        return FieldError(
            path=self.path, reason=errors.DUPLICATE, message=message, found=self.value
        )

    def not_found(self, message: str) -> FieldError:
        """Tell that what the value here refers to is not there."""
        return FieldError(
            path=self.path, reason=errors.NOT_FOUND, message=message, found=self.value
        )

    def not_supported(self, supported: Iterable[str]) -> FieldError:
        """Tell which values are taken here."""
        choices = ", ".join(errors.json_string(choice) for choice in supported)
        return FieldError(
            path=self.path,
            reason=errors.NOT_SUPPORTED,
            message=f"supported values: {choices}",
            found=self.value,
        )

    def forbidden(self, message: str) -> FieldError:
        """Tell that nothing may stand, or change, here."""
        return FieldError(
            path=self.path, reason=errors.FORBIDDEN, message=message, found=self.value
        )
