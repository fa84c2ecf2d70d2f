"""The ways of containing processes that this machine gives to whoever runs the tests."""

from __future__ import annotations

import asyncio
import os

import pytest

from spinney.nodes.processes.spawning import Spawner, SpawnerFailed
from tests.nodes.processes.pods import POSSIBLE


def _can_be_had(tier):
    async def tried():
        try:
            spawner = await Spawner.start(tier.isolation, own_user=tier.own_user)
        except SpawnerFailed:
            return False
        spawner.close()
        return True

    return asyncio.run(tried())


IS_ROOT = os.geteuid() == 0
TIERS = [tier for tier in POSSIBLE if (IS_ROOT or not tier.control_groups) and _can_be_had(tier)]

EVERY_TIER = pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.name)
