"""The maker of the protobuf table, on declarations small enough to check by eye."""

from __future__ import annotations

from tools import protobuf

PROTO = """
message Thing {
  // what it is called
  optional string name = 1;

  // +optional
  optional ThingSource thingSource = 2;

  repeated Part parts = 3;

  map<string, .k8s.io.apimachinery.pkg.api.resource.Quantity> limits = 4;

  optional .k8s.io.apimachinery.pkg.apis.meta.v1.Time since = 5;
}

message ThingSource {
  optional int32 count = 1;
}

message Part {
}
"""
GO = """
type Thing struct {
	metav1.TypeMeta `json:",inline"`
	// Name says what it is called.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	ThingSource `json:"" protobuf:"bytes,2,opt,name=thingSource"`
	Parts []Part `json:"pieces,omitempty" patchStrategy:"merge" protobuf:"bytes,3,rep,name=parts"`
	Limits map[string]Quantity `json:"limits,omitempty" protobuf:"bytes,4,rep,name=limits"`
	Since *metav1.Time `json:"since,omitempty" protobuf:"bytes,5,opt,name=since"`
}
"""


def test_numbers_come_from_one_file_and_names_from_the_other(tmp_path):
    folder = tmp_path / "core" / "v1"
    folder.mkdir(parents=True)
    (folder / "generated.proto").write_text(PROTO)
    (folder / "types.go").write_text(GO)
    found = protobuf.messages({"k8s.io/api": tmp_path})
    assert found["k8s.io.api.core.v1.Thing"] == [
        [1, "name", "string", ""],
        [2, "thingSource", "k8s.io.api.core.v1.ThingSource", "i"],
        [3, "pieces", "k8s.io.api.core.v1.Part", "ro"],
        [4, "limits", "k8s.io.apimachinery.pkg.api.resource.Quantity", "mo"],
        [5, "since", "k8s.io.apimachinery.pkg.apis.meta.v1.Time", ""],
    ]
    assert found["k8s.io.api.core.v1.ThingSource"] == [[1, "count", "int32", ""]]
