"""CustomResourceDefinition: a kind that a user brings."""

from spinney.api.core.builtin import Bare, built_in
from spinney.api.kinds import Names

KIND = built_in(
    Names(
        group="apiextensions.k8s.io",
        version="v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        singular="customresourcedefinition",
        short=("crd", "crds"),
        categories=("api-extensions",),
    ),
    Bare,
    namespaced=False,
    has_status=True,
)
