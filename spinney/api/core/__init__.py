"""The built-in kinds of Kubernetes, and the schemas of its types."""

from spinney.api.core.definitions import names, resolve

__all__ = ["names", "resolve"]
