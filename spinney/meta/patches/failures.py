"""How a patch fails: understood, but not fit for the object as it is.

What cannot be understood at all is a BadRequest; both tell the place in the patch.
"""

from __future__ import annotations

from spinney.meta.documents import Json
from spinney.meta.errors import INVALID, ApiError, Invalid


class PatchFailed(Invalid):
    """The patch does not fit the object. The caller's to mend: read the object, patch again."""

    def __init__(self, message: str, *, path: str = "") -> None:
        """Say what did not fit, and where; the object's key is the server's to add."""
        cause: Json = {"reason": INVALID, "message": message, "field": path or "patch"}
        told = f"{path}: {message}" if path else message
        ApiError.__init__(self, told, details={"causes": [cause]})
