"""What laws share: how many examples a dear one has."""

from __future__ import annotations

from hypothesis import settings


def examples(share: int) -> settings:
    """Settings for a law whose every example is a long story: a share of those of the profile."""
    return settings(max_examples=max(10, settings.default.max_examples // share))
