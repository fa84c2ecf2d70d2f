"""The spawner: forks a keeper for each container it is asked for, and nothing else.

It holds no state: a keeper (`keeper.py`) talks to the agent by itself, over the socket that came
with its plan. Where processes get PID namespaces the spawner is process 1 of one itself, so that
nothing below it outlives it. It ends when the agent's end of its socket is closed.

    agent ──plan, report socket, output──► spawner ──fork──► keeper ──spawn──► the container
      ▲                                                        │
      └────────────── started, ended, failed ──────────────────┘
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket

from spinney.nodes.processes.spawner import keeper, kernel, messages


def main(descriptor: int, *, own_user: bool, own_pids: bool) -> None:
    """Serve one agent. `own_user` and `own_pids` ask for namespaces; says first if it got them."""
    control = socket.socket(fileno=descriptor)
    try:
        _enter(own_user=own_user, own_pids=own_pids)
    except OSError as error:
        control.send(json.dumps({"failed": str(error)}).encode())
        return
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    kernel.become_subreaper()
    kernel.set_name("spinney-spawner")
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC) if own_pids else -1
    control.send(b'{"ready": true}')
    gc.collect()
    gc.disable()
    gc.freeze()
    while True:
        message, descriptors = messages.receive(control)
        if not message:
            return
        _fork(descriptors, own, control)
        for each in descriptors:
            os.close(each)


def _enter(*, own_user: bool, own_pids: bool) -> None:
    """Enter the namespaces; goes on in a child where PIDs are its own."""
    if own_user:
        uid, gid = os.getuid(), os.getgid()
        kernel.unshare(kernel.CLONE_NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    if own_pids:
        kernel.unshare(kernel.CLONE_NEWPID)
        if os.fork():
            os._exit(0)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _fork(descriptors: list[int], own: int, control: socket.socket) -> None:
    """Fork a keeper; it never returns from here."""
    child = -1
    try:
        if own >= 0:
            kernel.unshare(kernel.CLONE_NEWPID)
        child = os.fork()
    except OSError as error:
        _refuse(descriptors, error)
    if child == 0:
        control.close()
        keeper.keep(descriptors, is_first=own >= 0)
    if own >= 0:
        kernel.enter_namespace(own, kernel.CLONE_NEWPID)


def _refuse(descriptors: list[int], error: OSError) -> None:
    """Tell the agent that there is no keeper."""
    report = socket.socket(fileno=os.dup(descriptors[1]))
    failed = {"failed": "fork", "errno": error.errno, "subject": ""}
    report.send(json.dumps(failed).encode())
    report.close()
