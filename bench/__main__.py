"""Runs the benchmarks: all of them, or those named. `make bench`."""

from __future__ import annotations

import sys

from bench import (
    admission,
    engine,
    fleet,
    gangs,
    placement,
    registry,
    scheduling,
    server,
    starting,
    store,
)

BENCHMARKS = {
    "admission": admission.run,
    "engine": engine.run,
    "fleet": fleet.run,
    "gangs": gangs.run,
    "placement": placement.run,
    "registry": registry.run,
    "scheduling": scheduling.run,
    "server": server.run,
    "starting": starting.run,
    "store": store.run,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
        return 2
    for name in names or BENCHMARKS:
        print(f"== {name}")
        for line in BENCHMARKS[name]():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
