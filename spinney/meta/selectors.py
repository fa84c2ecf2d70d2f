"""Selectors: which objects are meant, by their labels or by a few of their fields.

An empty selector matches everything. A selector that is not there matches nothing: callers say so
with `NOTHING`, which `from_document(None)` returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from spinney.meta import metadata
from spinney.meta.documents import Json
from spinney.meta.records import Record

IN, NOT_IN, EXISTS, NOT_EXISTS = "In", "NotIn", "Exists", "DoesNotExist"
OPERATORS = (IN, NOT_IN, EXISTS, NOT_EXISTS)


class Requirement(Record, order=True):
    """One condition on one label; values are sorted and each stands once."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it; an absent label meets `NotIn`."""
        if self.operator == IN:
            return labels.get(self.key) in self.values
        if self.operator == NOT_IN:
            return labels.get(self.key) not in self.values
        return (self.key in labels) == (self.operator == EXISTS)

    def __str__(self) -> str:
        """Spell it as kubectl does: `app=chat`, `tier in (a,b)`, `!gone`."""
        if self.operator == EXISTS:
            return self.key
        if self.operator == NOT_EXISTS:
            return f"!{self.key}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == IN else '!='}{self.values[0]}"
        return f"{self.key} {'in' if self.operator == IN else 'notin'} ({','.join(self.values)})"


class LabelSelector(Record):
    """Conditions on labels that must all hold, in the order of their keys."""

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False
    """Whether it matches nothing, as a selector does that is not there."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all conditions hold."""
        if self.is_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """The labels that must have one exact value, for finding objects by an index."""
        return tuple(
            (requirement.key, requirement.values[0])
            for requirement in self.requirements
            if requirement.operator == IN and len(requirement.values) == 1
        )

    def __str__(self) -> str:
        """The canonical text; one selector, one text."""
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(is_nothing=True)

_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),])|([^=!(),<> \t\r\n]+)|(.))?", re.DOTALL)


def parse_selector(text: str) -> LabelSelector:
    """Return the selector a text such as `a=b,c!=d,e in (x,y),!f` names.

    Raises ValueError saying what was found where.
    """
    parser = _Parser(text)
    found = []
    if parser.peek():
        found.append(parser.requirement())
        while parser.peek():
            parser.expect(",")
            found.append(parser.requirement())
    return _selector(found)


def _selector(requirements: list[Requirement]) -> LabelSelector:
    return LabelSelector(requirements=tuple(sorted(set(requirements))))


class _Parser:
    """Takes a selector's text apart, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._at = 0
        self._token = ""
        self._is_word = False
        self._step()

    def _step(self) -> str:
        taken = self._token
        match = _TOKEN.match(self._text, self._end)
        mark, word, other = match.groups() if match else (None, None, None)
        self._token = mark or word or other or ""
        self._is_word = word is not None
        self._end = match.end() if match else len(self._text)
        self._at = self._end - len(self._token)
        return taken

    def peek(self) -> str:
        return self._token

    def expect(self, *tokens: str) -> str:
        if self._token not in tokens or self._is_word:
            raise self._fault(" or ".join(f'"{token}"' for token in tokens))
        return self._step()

    def _fault(self, expected: str) -> ValueError:
        found = f'"{self._token[:40]}"' if self._token else "the end"
        return ValueError(f"must have {expected} at position {self._at + 1}, found {found}")

    def requirement(self) -> Requirement:
        if self._token == "!":
            self._step()
            return Requirement(key=self._key(), operator=NOT_EXISTS)
        key = self._key()
        if self._token in ("", ","):
            return Requirement(key=key, operator=EXISTS)
        if self._is_word and self._token in ("in", "notin"):
            operator = IN if self._step() == "in" else NOT_IN
            return Requirement(key=key, operator=operator, values=self._values())
        sign = self.expect("=", "==", "!=", "in", "notin", ",")
        operator = NOT_IN if sign == "!=" else IN
        return Requirement(key=key, operator=operator, values=(self._value(),))

    def _key(self) -> str:
        at = self._at
        if not self._is_word:
            raise self._fault("a label's key")
        key = self._step()
        if fault := metadata.qualified_name_fault(key):
            raise ValueError(f'key "{key[:40]}" at position {at + 1}: {fault}')
        return key

    def _value(self) -> str:
        at = self._at
        value = self._step() if self._is_word else ""
        if fault := metadata.label_value_fault(value):
            raise ValueError(f'value "{value[:40]}" at position {at + 1}: {fault}')
        return value

    def _values(self) -> tuple[str, ...]:
        self.expect("(")
        values = {self._value()}
        while self.expect(",", ")") == ",":
            values.add(self._value())
        return tuple(sorted(values))


def from_labels(labels: Mapping[str, str]) -> LabelSelector:
    """Return the selector that asks for each of these labels."""
    return _selector(
        [Requirement(key=key, operator=IN, values=(value,)) for key, value in labels.items()]
    )


def from_document(document: Json) -> LabelSelector:
    """Return the selector of `matchLabels` and `matchExpressions`; None matches nothing.

    Raises ValueError saying what must hold, with the field in front.
    """
    if document is None:
        return NOTHING
    if not isinstance(document, dict):
        raise ValueError("must be an object with matchLabels or matchExpressions")
    return _selector([*_of_labels(document.get("matchLabels")), *_of_expressions(document)])


def _of_labels(labels: Json) -> Iterator[Requirement]:
    if labels is None:
        return
    if not isinstance(labels, dict):
        raise ValueError("matchLabels: must be an object")
    for key, value in labels.items():
        if fault := metadata.qualified_name_fault(key):
            raise ValueError(f"matchLabels: {fault}")
        if not isinstance(value, str):
            raise ValueError(f"matchLabels[{key}]: must be a string")
        if fault := metadata.label_value_fault(value):
            raise ValueError(f"matchLabels[{key}]: {fault}")
        yield Requirement(key=key, operator=IN, values=(value,))


def _of_expressions(document: dict[str, Json]) -> Iterator[Requirement]:
    expressions = document.get("matchExpressions")
    if expressions is None:
        return
    if not isinstance(expressions, list):
        raise ValueError("matchExpressions: must be a list")
    for index, expression in enumerate(expressions):
        try:
            yield _of_expression(expression)
        except ValueError as error:
            raise ValueError(f"matchExpressions[{index}]{error}") from error


def _of_expression(expression: Json) -> Requirement:
    if not isinstance(expression, dict):
        raise ValueError(": must be an object")
    key, operator = expression.get("key"), expression.get("operator")
    given = expression.get("values") or []
    if not isinstance(key, str):
        raise ValueError(".key: must be a string")
    if fault := metadata.qualified_name_fault(key):
        raise ValueError(f".key: {fault}")
    if not isinstance(operator, str) or operator not in OPERATORS:
        raise ValueError(f".operator: must be one of {', '.join(OPERATORS)}")
    if not isinstance(given, list):
        raise ValueError(".values: must be a list of strings")
    values = {value for value in given if isinstance(value, str)}
    if len(given) != sum(isinstance(value, str) for value in given):
        raise ValueError(".values: must be a list of strings")
    if operator in (IN, NOT_IN) and not values:
        raise ValueError(f".values: must be specified when operator is {IN} or {NOT_IN}")
    if operator in (EXISTS, NOT_EXISTS) and values:
        raise ValueError(f".values: may not be specified when operator is {operator}")
    for value in sorted(values):
        if fault := metadata.label_value_fault(value):
            raise ValueError(f".values: {fault}")
    return Requirement(key=key, operator=operator, values=tuple(sorted(values)))


class FieldTerm(Record, order=True):
    """One field that must have, or must not have, a value."""

    path: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        """Spell it as kubectl does; commas, equals signs and backslashes are escaped."""
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.path}{'!=' if self.negated else '='}{escaped}"


class FieldSelector(Record):
    """Conditions on fields that must all hold."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the fields drawn from an object meet it; an absent one counts as empty."""
        return all((fields.get(term.path, "") == term.value) != term.negated for term in self.terms)

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """The fields that must have one exact value."""
        return tuple((term.path, term.value) for term in self.terms if not term.negated)

    def __str__(self) -> str:
        """The canonical text; one selector, one text."""
        return ",".join(map(str, self.terms))


_FIELD_PART = re.compile(r"((?:[^\\,]|\\.)*+)(,|\Z)", re.DOTALL)
_FIELD_TERM = re.compile(r"\s*([^=!\\\s]+)\s*(==|!=|=)((?:[^\\=]|\\[\\,=])*+)", re.DOTALL)


def parse_field_selector(text: str) -> FieldSelector:
    r"""Return the selector a text such as `metadata.name=x,status.phase!=Running` names.

    In values `\,`, `\=` and `\\` stand for what follows the backslash. Raises ValueError saying
    what was found where.
    """
    terms, at = set(), 0
    while at < len(text):
        part = _FIELD_PART.match(text, at)
        match = _FIELD_TERM.fullmatch(part[1]) if part else None
        if part is None or match is None:
            found = text[at : at + 40]
            raise ValueError(
                f'must be a field and a value such as "metadata.name=web" at position {at + 1}, '
                f'found "{found}"'
            )
        path, sign, value = match.groups()
        value = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL)
        terms.add(FieldTerm(path=path, value=value, negated=sign == "!="))
        at = part.end()
    return FieldSelector(terms=tuple(sorted(terms)))
