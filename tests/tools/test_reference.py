"""The reference pages: a row for every field of ours, and links that lead somewhere."""

import re

import pytest

from spinney.api import fields
from spinney.api.kinds import OUR_KINDS
from tools import reference


@pytest.mark.parametrize("key", OUR_KINDS, ids=lambda key: key.kind)
def test_every_field_of_ours_has_a_row_below_its_type(key):
    page = reference.reference_page(OUR_KINDS[key])
    sections = dict(re.findall(r"^##+ (.+)\n((?:(?!##).*\n)*)", page, re.MULTILINE))

    def check(schema, section):
        for name, below in schema.properties.items():
            inner = fields.beneath(below)
            assert f"\n| `{name}`" in sections[section], (section, name)
            if name != "metadata" and inner.properties and not (below.core or inner.core):
                check(inner, inner.type_name)

    check(OUR_KINDS[key].schema, "Fields")


@pytest.mark.parametrize("key", OUR_KINDS, ids=lambda key: key.kind)
def test_every_link_leads_to_a_heading_of_the_page(key):
    page = reference.reference_page(OUR_KINDS[key])
    headings = {heading.lower() for heading in re.findall(r"^##+ (.+)$", page, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= headings


def test_the_index_lists_every_kind_with_its_page():
    page = reference.index_page(tuple(OUR_KINDS.values()))
    assert page.count("\n| [") == len(OUR_KINDS)
    for kind in OUR_KINDS.values():
        assert f"[{kind.names.kind}]({kind.names.singular}.md)" in page


def test_a_bar_in_a_text_does_not_end_its_cell():
    for key in OUR_KINDS:
        for line in reference.reference_page(OUR_KINDS[key]).splitlines():
            if line.startswith("| `"):
                assert len(re.findall(r"(?<!\\\\)\|", line)) in (3, 4, 5), line
