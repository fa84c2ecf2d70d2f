"""Chance from a seed."""

from __future__ import annotations

import uuid
from datetime import timedelta

from spinney.testing.entropy import SUFFIX_ALPHABET, SeededEntropy


def draws(entropy):
    return [
        entropy.uid(),
        entropy.suffix(5),
        entropy.token(16),
        entropy.jitter(timedelta(seconds=9)),
        entropy.between(1, 10**6),
    ]


def test_the_same_seed_draws_the_same():
    assert draws(SeededEntropy(7)) == draws(SeededEntropy("7"))
    assert draws(SeededEntropy(7)) != draws(SeededEntropy(8))


def test_a_stream_is_not_moved_by_what_others_draw():
    alone, busy = SeededEntropy(7), SeededEntropy(7)
    draws(busy)
    draws(busy.stream("other"))
    assert draws(alone.stream("faults")) == draws(busy.stream("faults"))
    assert draws(alone.stream("faults")) != draws(alone.stream("latency"))


def test_what_is_drawn_is_what_it_should_be():
    entropy = SeededEntropy(7)
    assert uuid.UUID(entropy.uid()).version == 4
    assert set(entropy.suffix(200)) <= set(SUFFIX_ALPHABET)
    assert len(entropy.token(32)) == 43
    assert timedelta() <= entropy.jitter(timedelta(seconds=1)) <= timedelta(seconds=1)
    assert entropy.jitter(timedelta()) == timedelta()
    assert {entropy.between(1, 3) for _ in range(100)} == {1, 2, 3}


def test_chances_are_kept():
    entropy = SeededEntropy(7)
    assert not any(entropy.happens(0) for _ in range(1000))
    assert all(entropy.happens(1000) for _ in range(1000))
    assert 400 < sum(entropy.happens(500) for _ in range(1000)) < 600
