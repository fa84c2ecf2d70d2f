"""References: spelling and order."""

from spinney.meta.references import GroupKind, Precondition, Ref

POD = GroupKind(group="", kind="Pod")
SET = GroupKind(group="grove.io", kind="PodCliqueSet")


def test_references_read_as_kubectl_spells_them() -> None:
    assert str(SET) == "PodCliqueSet.grove.io"
    assert str(POD) == "Pod"
    assert str(Ref(kind=SET, namespace="default", name="chat")) == "PodCliqueSet default/chat"
    assert str(Ref(kind=POD, namespace="", name="a")) == "Pod a"


def test_references_sort_by_kind_namespace_name() -> None:
    refs = [
        Ref(kind=kind, namespace=namespace, name=name)
        for kind in (POD, SET)
        for namespace in ("a", "b")
        for name in ("x", "y")
    ]
    assert sorted([*refs[4:], *refs[:4]]) == refs
    assert len(set(refs)) == len(refs)
    assert repr(refs[0]) == "Ref(kind=GroupKind(group='', kind='Pod'), namespace='a', name='x')"


def test_a_precondition_holds_always_where_unset() -> None:
    assert Precondition() == Precondition(uid=None, resource_version=None)
