"""Generated files: drift is seen, told with its remedy, and mended."""

import pytest

from tools import generate
from tools.generate import Generator

MADE = {"made/one.txt": b"one\n", "made/two.txt": b"two\n"}


@pytest.fixture
def generators():
    return {"numbers": Generator(lambda: MADE, ("made/*.txt",))}


@pytest.fixture
def root(tmp_path, generators):
    list(generate.write(tmp_path, generators))
    return tmp_path


def test_what_was_just_written_does_not_differ(root, generators):
    assert list(generate.drift(root, generators)) == []


def test_writing_again_writes_nothing(root, generators):
    assert list(generate.write(root, generators)) == []


def test_a_changed_file_is_told_and_mended(root, generators):
    (root / "made/one.txt").write_text("uno\n")
    assert list(generate.drift(root, generators)) == [
        "made/one.txt: differs from what would be generated (generator numbers)"
    ]
    assert list(generate.write(root, generators)) == ["wrote made/one.txt"]
    assert (root / "made/one.txt").read_bytes() == b"one\n"


def test_a_missing_file_is_told(root, generators):
    (root / "made/two.txt").unlink()
    assert list(generate.drift(root, generators)) == ["made/two.txt: missing (generator numbers)"]


def test_a_file_nothing_makes_is_told_and_removed(root, generators):
    (root / "made/three.txt").write_text("three\n")
    assert list(generate.drift(root, generators)) == [
        "made/three.txt: nothing makes it any more (generator numbers)"
    ]
    assert list(generate.write(root, generators)) == ["removed made/three.txt"]
    assert list(generate.drift(root, generators)) == []


def test_check_fails_and_says_how_to_mend(root, generators, monkeypatch, capsys):
    (root / "made/one.txt").write_text("uno\n")
    monkeypatch.setattr(generate, "ROOT", root)
    monkeypatch.setattr(generate, "GENERATORS", generators)
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "made/one.txt: differs from what would be generated (generator numbers)",
        "mend with: make generate",
    ]
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0


def test_an_unknown_flag_is_a_usage_error(capsys):
    assert generate.main(["--chekc"]) == 2
    assert "usage" in capsys.readouterr().err


def test_nothing_committed_has_drifted():
    assert list(generate.drift(generate.ROOT, generate.GENERATORS)) == []
