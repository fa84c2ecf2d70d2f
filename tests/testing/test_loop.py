"""Virtual time: no waiting, the same run twice, and a dead end is told, not sat out."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta

import pytest

from spinney.testing import loop
from spinney.testing.clock import START, ManualClock, VirtualClock
from spinney.testing.entropy import SeededEntropy


def trace(seed):
    """A run of 50 tasks that wait at random, 24 times each: who woke, and when."""
    seen = []

    async def walk(clock, name):
        entropy = SeededEntropy(seed).stream(name)
        for _ in range(24):
            await clock.sleep(entropy.jitter(timedelta(minutes=5)))
            seen.append((clock.elapsed(), name))

    async def main():
        clock = VirtualClock()
        await asyncio.gather(*(walk(clock, f"w{number}") for number in range(50)))
        assert clock.now() == START + clock.elapsed()

    loop.run(main())
    return seen


def test_an_hour_of_waiting_is_the_same_for_the_same_seed():
    first = trace(1)
    assert len(first) == 1200
    assert first == sorted(first, key=lambda step: step[0])
    assert first[-1][0] > timedelta(minutes=40)
    assert trace(1) == first
    assert trace(2) != first


def test_timers_fire_at_their_time_to_the_microsecond():
    async def main():
        clock = VirtualClock()
        for wait in (timedelta(microseconds=1), timedelta(days=400), timedelta(milliseconds=33)):
            began = clock.elapsed()
            await clock.sleep(wait)
            assert timedelta() <= clock.elapsed() - began - wait <= timedelta(microseconds=1)

    loop.run(main())


def test_a_timeout_comes_at_its_virtual_time():
    async def main():
        clock = VirtualClock()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        assert clock.elapsed() == timedelta(hours=1)

    loop.run(main())


def test_waiting_for_what_nobody_does_tells_who_waits_and_where():
    async def wait_for_nothing():
        await asyncio.Event().wait()

    async def main():
        await asyncio.create_task(wait_for_nothing(), name="the-waiter")

    with pytest.raises(loop.Deadlock) as caught:
        loop.run(main())
    told = [line for line in caught.value.tasks if "the-waiter" in line]
    assert len(told) == 1
    assert "wait_for_nothing" in told[0]
    assert "test_loop.py:" in told[0]


def test_real_descriptors_are_served():
    async def main():
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        theirs.sendall(b"hello\n")
        assert await reader.readline() == b"hello\n"
        writer.close()
        await writer.wait_closed()
        theirs.close()

    loop.run(main())


def test_a_virtual_clock_needs_the_virtual_loop():
    async def main():
        with pytest.raises(TypeError, match="VirtualLoop"):
            VirtualClock()

    asyncio.run(main())


def test_the_wall_clock_jumps_and_the_monotonic_one_does_not():
    async def main():
        clock = VirtualClock()
        await clock.sleep(timedelta(seconds=5))
        clock.jump(timedelta(hours=-1))
        assert clock.now() == START + timedelta(seconds=5) - timedelta(hours=1)
        assert clock.elapsed() == timedelta(seconds=5)

    loop.run(main())


def test_a_manual_clock_wakes_in_order_and_only_when_moved():
    woken = []

    async def sleep(clock, seconds):
        await clock.sleep(timedelta(seconds=seconds))
        woken.append(seconds)

    async def main():
        clock = ManualClock()
        tasks = [asyncio.create_task(sleep(clock, seconds)) for seconds in (3, 1, 2, 0)]
        await asyncio.gather(tasks[3])
        assert (woken, clock.sleeper_count) == ([0], 3)
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        clock.advance(timedelta(seconds=3))
        await asyncio.gather(tasks[0], tasks[2])
        assert (woken, clock.sleeper_count) == ([0, 2, 3], 0)
        assert clock.now() == START + timedelta(seconds=3)

    asyncio.run(main())
