"""`spinney validate` and `show-defaults`: what a person, and a program, gets to read."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
import yaml

from spinney.cli import main

ONE = """\
# a comment
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: one
spec:
  replicas: {replicas}
  template:
    cliques:
      - name: web
        spec:
          roleName: web
          podSpec:
            containers:
              - name: web
                image: example/web:1
"""


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder with files; returns exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words, stdin=b"", **files):
        for name, text in files.items():
            path = Path(name.replace("__", "/") + ".yaml")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            code = main.run(words)
        except SystemExit as end:
            code = end.code
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_a_good_manifest_is_told_to_be_valid(call):
    assert call("validate", "a.yaml", a=ONE.format(replicas=1)) == (
        0,
        "a.yaml:2: PodCliqueSet default/one: valid\n",
        "1 document, all valid\n",
    )


def test_every_fault_of_every_document_has_its_file_line_path_and_what_must_hold(call):
    two = (
        ONE.format(replicas=-1)
        + "---\n"
        + ONE.format(replicas="'1'").replace("image:", "imgae:").replace("one", "two")
        + "---\nkind: [\n---\n"
        + ONE.format(replicas=2).replace("one", "three")
    )
    assert call("validate", "a.yaml", a=two) == (
        1,
        "a.yaml:7: PodCliqueSet default/one: spec.replicas: Invalid value: -1: "
        "must be greater than or equal to 0\n"
        'a.yaml:24: PodCliqueSet default/two: spec.replicas: Invalid value: "1": '
        "must be an integer\n"
        "a.yaml:33: PodCliqueSet default/two: spec.template.cliques[0].spec.podSpec.containers[0]"
        '.imgae: Unknown field: did you mean "image"?\n'
        "a.yaml:36: document: a value is expected here: is a bracket not closed?\n"
        "a.yaml:38: PodCliqueSet default/three: valid\n",
        "4 documents, 1 valid, 4 errors\n",
    )


def test_a_duplicate_key_is_an_error(call):
    twice = ONE.format(replicas=1).replace("  name: one\n", "  name: one\n  name: other\n")
    code, out, _ = call("validate", "a.yaml", a=twice)
    assert code == 1
    assert "a.yaml:6: PodCliqueSet default/other: metadata.name: Duplicate field" in out


def test_programs_get_json(call):
    code, out, _ = call("validate", "-o", "json", "a.yaml", a=ONE.format(replicas=-1))
    assert code == 1
    assert json.loads(out) == {
        "valid": False,
        "documents": [
            {
                "file": "a.yaml",
                "line": 2,
                "apiVersion": "grove.io/v1alpha1",
                "kind": "PodCliqueSet",
                "namespace": "default",
                "name": "one",
                "valid": False,
                "errors": [
                    {
                        "line": 7,
                        "path": "spec.replicas",
                        "reason": "FieldValueInvalid",
                        "message": "Invalid value: -1: must be greater than or equal to 0",
                        "found": -1,
                    }
                ],
                "warnings": [],
            }
        ],
    }


def test_standard_input_folders_and_lists_are_read(call):
    document = yaml.safe_load(ONE.format(replicas=1))
    listed = {"apiVersion": "v1", "kind": "List", "items": [document, {**document, "metadata": {}}]}
    code, out, err = call(
        "validate",
        "-",
        "dir",
        stdin=json.dumps(listed).encode(),
        dir__a=ONE.format(replicas=1).replace("one", "a"),
        dir__b=ONE.format(replicas=1).replace("one", "b"),
    )
    assert (code, err) == (1, "4 documents, 3 valid, 1 error\n")
    assert out == (
        "<stdin>:1: PodCliqueSet default/one: valid\n"
        "<stdin>:1: PodCliqueSet: metadata.name: Required value: "
        "name or generateName is required\n"
        "dir/a.yaml:2: PodCliqueSet default/a: valid\n"
        "dir/b.yaml:2: PodCliqueSet default/b: valid\n"
    )


def test_faults_of_a_list_item_have_their_own_lines(call):
    items = "".join(
        "  - " + "    ".join(ONE.format(replicas=count).splitlines(keepends=True)[1:])
        for count in (1, -7)
    )
    code, out, _ = call("validate", "l.yaml", l=f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert code == 1
    assert "l.yaml:24: PodCliqueSet default/one: spec.replicas: Invalid value: -7" in out


def test_two_documents_of_one_name_are_told(call):
    code, out, _ = call(
        "validate", "a.yaml", "b.yaml", a=ONE.format(replicas=1), b=ONE.format(replicas=1)
    )
    assert code == 1
    assert out.splitlines()[1] == (
        'b.yaml:5: PodCliqueSet default/one: metadata.name: Duplicate value: "one": '
        "already at a.yaml:2"
    )


def test_what_may_not_change_is_checked_against_what_is_stored(call):
    changed = ONE.format(replicas=5).replace("roleName: web", "roleName: site")
    code, out, _ = call(
        "validate", "new.yaml", "--against", "old.yaml", new=changed, old=ONE.format(replicas=1)
    )
    assert code == 1
    assert out == (
        "new.yaml:12: PodCliqueSet default/one: spec.template.cliques[0].spec.roleName: "
        'Invalid value: "site": field is immutable\n'
    )


def test_an_object_that_is_not_stored_is_said_to_be_checked_as_new(call):
    """A name misspelt must not look like a change that is allowed."""
    code, out, err = call(
        "validate",
        "new.yaml",
        "--against",
        "old.yaml",
        new=ONE.format(replicas=1).replace("one", "won"),
        old=ONE.format(replicas=1),
    )
    assert (code, err) == (0, "1 document, all valid\n")
    assert out == (
        "new.yaml:2: PodCliqueSet default/won: valid\n"
        "new.yaml:2: PodCliqueSet default/won: warning: checked as a new object: none of this "
        "kind and name is among the stored ones\n"
    )


def test_objects_without_a_name_are_no_updates_of_each_other(call):
    nameless = ONE.replace("  name: one\n", "  generateName: one-\n")
    code, out, _ = call(
        "validate",
        "new.yaml",
        "--against",
        "old.yaml",
        new=nameless.format(replicas=1).replace("roleName: web", "roleName: site"),
        old=nameless.format(replicas=1),
    )
    assert code == 0
    assert "checked as a new object" in out


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("kind: [\n", "--against old.yaml: line 2: a value is expected here: is a bracket not"),
        ("- a\n", "--against old.yaml: line 1: must be an object with apiVersion and kind"),
        ("# nothing\n", "--against: no documents found"),
        (
            f"{ONE.format(replicas=1)}---\n{ONE.format(replicas=2)}",
            "--against old.yaml: line 19: PodCliqueSet default/one is given twice",
        ),
    ],
)
def test_what_is_stored_must_be_readable(call, stored, said):
    """Nothing is compared with half of what is stored, and then called valid."""
    code, out, err = call(
        "validate", "new.yaml", "--against", "old.yaml", new=ONE.format(replicas=1), old=stored
    )
    assert (code, out) == (2, "")
    assert err.startswith(f"spinney: {said}")


def test_a_topology_among_the_stored_objects_is_checked_against(call):
    constrained = ONE.format(replicas=1).replace(
        "  template:\n",
        "  template:\n    topologyConstraint: {topologyName: racks, pack: {required: shelf}}\n",
    )
    binding = (
        "apiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\n"
        "metadata: {name: racks}\nspec: {levels: [{domain: rack, key: example.com/rack}]}\n"
    )
    code, out, _ = call("validate", "a.yaml", "--against", "old.yaml", a=constrained, old=binding)
    assert code == 1
    assert 'not a level of ClusterTopologyBinding "racks", which has: rack' in out


def test_a_fault_is_one_line_that_steers_no_terminal(call):
    """Names and keys come from whoever wrote the manifest."""
    nasty = ONE.format(replicas=1).replace("name: one", 'name: "a\\e[2J\\nb\\u202e"')
    nasty = nasty.replace("spec:\n", 'spec:\n  "x\\e]0;y\\n": 1\n', 1)
    code, out, _ = call("validate", "a.yaml", a=nasty)
    assert code == 1
    assert len(out.splitlines()) == 2
    assert out.replace("\n", "").isprintable()
    assert "default/a\\u001b[2J\\u000ab\\u202e: metadata.name" in out


def test_a_topology_among_the_documents_is_checked_against(call):
    constrained = ONE.format(replicas=1).replace(
        "  template:\n",
        "  template:\n    topologyConstraint: {topologyName: racks, pack: {required: shelf}}\n",
    )
    binding = (
        "---\napiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\n"
        "metadata: {name: racks}\nspec: {levels: [{domain: rack, key: example.com/rack}]}\n"
    )
    assert call("validate", "a.yaml", a=constrained)[0] == 0
    code, out, _ = call("validate", "a.yaml", a=constrained + binding)
    assert code == 1
    assert out.startswith(
        "a.yaml:9: PodCliqueSet default/one: spec.template.topologyConstraint.pack.required: "
        'Invalid value: "shelf": not a level of ClusterTopologyBinding "racks", which has: rack\n'
    )


@pytest.mark.rule("1.1")
@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            "apiVersion: grove.io/v1alpha1\nkind: PodGangSet\n",
            '2: PodGangSet: kind: Invalid value: "PodGangSet": '
            'this kind is called "PodCliqueSet" now',
        ),
        (
            "apiVersion: grove.io/v1\nkind: PodCliqueSet\n",
            '1: PodCliqueSet: apiVersion: Invalid value: "grove.io/v1": '
            'PodCliqueSet is served as "grove.io/v1alpha1"',
        ),
        (
            "apiVersion: v1\nkind: PodClique\n",
            '1: PodClique: apiVersion: Invalid value: "v1": '
            'PodClique is served as "grove.io/v1alpha1"',
        ),
        (
            "apiVersion: grove.io/v1alpha1\nkind: PodCliqeSet\n",
            '2: PodCliqeSet: kind: Invalid value: "PodCliqeSet": no such kind in '
            '"grove.io/v1alpha1", did you mean "PodCliqueSet"?',
        ),
        (
            "kind: PodCliqueSet\n",
            "1: PodCliqueSet: apiVersion: Required value: every object says of which group, "
            "version and kind it is",
        ),
        ("apiVersion: 7\nkind: x\n", "1: x: apiVersion: Invalid value: 7: must be a string"),
        ("- a\n", "1: document: must be an object with apiVersion and kind"),
        ("just text\n", "1: document: must be an object with apiVersion and kind"),
    ],
)
def test_what_is_no_kind_of_ours_is_told(call, head, said):
    code, out, _ = call("validate", "a.yaml", a=head)
    assert (code, out.splitlines()[0]) == (1, f"a.yaml:{said}")


def test_nothing_to_check_is_said(call):
    assert call("validate", "a.yaml", a="# nothing\n") == (0, "", "no documents found\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["validate", "gone.yaml"],
            "spinney: gone.yaml: cannot be read: No such file or directory\n",
        ),
        (
            ["validate", "empty"],
            "spinney: empty: no manifests in this folder (.yaml, .yml, .json)\n",
        ),
        (["validate", ""], "spinney: the name of a file is empty\n"),
        (["validate"], "spinney: the following arguments are required: FILE|-|DIR\n"),
        (["validate", "a", "-o", "xml"], "spinney: argument -o/--output: invalid choice: 'xml'"),
        (["vali"], "spinney: argument VERB: invalid choice: 'vali'"),
        (["fields", "nope"], 'spinney: no kind "nope"; there are: '),
        (["fields", "podcliqset"], 'spinney: no kind "podcliqset", did you mean "podcliqueset"?\n'),
        (
            ["fields", "pcs.spec.replica"],
            'spinney: podcliqueset.spec has no field "replica", did you mean',
        ),
        (["crds", "nope"], 'spinney: no kind "nope"'),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_is_wrong(call, words, said):
    Path("empty").mkdir()
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert err.startswith(said)


def test_objects_are_shown_as_they_would_be_stored(call):
    code, out, err = call("show-defaults", "a.yaml", a=ONE.format(replicas=1))
    assert (code, err) == (0, "")
    shown = yaml.safe_load(out)
    assert shown["metadata"] == {"name": "one", "namespace": "default"}
    assert shown["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 1
    assert call("validate", "-", stdin=out.encode())[0] == 0
    code, again, _ = call("show-defaults", "-", stdin=out.encode())
    assert (code, again) == (0, out)


def test_several_objects_are_shown_as_several_documents_or_one_list(call):
    both = ONE.format(replicas=1) + "---\n" + ONE.format(replicas=2).replace("one", "two")
    _, out, _ = call("show-defaults", "a.yaml", a=both)
    assert [item["metadata"]["name"] for item in yaml.safe_load_all(out)] == ["one", "two"]
    _, out, _ = call("show-defaults", "-o", "json", "a.yaml", a=both)
    assert [item["metadata"]["name"] for item in json.loads(out)["items"]] == ["one", "two"]


def test_a_faulty_object_is_not_shown(call):
    code, out, err = call("show-defaults", "a.yaml", a=ONE.format(replicas=-1))
    assert (code, out) == (1, "")
    assert err.startswith("a.yaml:7: PodCliqueSet default/one: spec.replicas: Invalid value: -1")


def test_warnings_are_told_and_are_no_faults(call):
    once = ONE.format(replicas=1).replace(
        "podSpec:\n", "podSpec:\n            restartPolicy: Never\n"
    )
    code, out, err = call("validate", "a.yaml", a=once)
    assert (code, err) == (0, "1 document, all valid\n")
    assert out.splitlines()[1].startswith(
        "a.yaml:2: PodCliqueSet default/one: warning: spec.template"
    )
