"""The keeper: one small process above each container. It starts it, reaps it, and ends all of it.

Whatever the container leaves behind, daemons that forked twice among it, becomes a child of the
keeper: it is process 1 of the container's PID namespace, or else a subreaper. So "nothing is left"
is not a guess: it is what the kernel says when there is no child to wait for.

It ends when the container's main process does, when it is told to, and when the agent is gone.
Before it says how the container ended, all of it is dead.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import socket
from typing import NoReturn, cast

from spinney.nodes.processes.spawner import kernel, launching, messages, mounting, sweeping
from spinney.nodes.processes.spawner.plans import ExecPlan, Plan

PLAN, REPORT, OUTPUT, ERRORS = range(4)
"""The descriptors that come with the order to fork, in order."""


def keep(descriptors: list[int], *, is_first: bool) -> NoReturn:
    """Be the keeper of one container; `is_first` as process 1 of a PID namespace. Never returns."""
    code = 1
    try:
        report = socket.socket(fileno=descriptors[REPORT])
        plan = cast(Plan, messages.read_plan(descriptors[PLAN]))
        output = (descriptors[OUTPUT], descriptors[ERRORS])
        Keeper(plan, report, is_first=is_first).run(output)
        code = 0
    except BrokenPipeError:
        pass
    finally:
        os._exit(code)


class Keeper:
    """One container and the commands run beside it."""

    def __init__(self, plan: Plan, report: socket.socket, *, is_first: bool) -> None:
        """Own the socket to the agent."""
        self._plan = plan
        self._report = report
        self._is_first = is_first
        self._main = 0
        self._status: int | None = None
        self._has_children = True
        self._execs: dict[int, int] = {}
        """Process id of a command that runs beside the container, to its number."""

    def run(self, output: tuple[int, int]) -> None:
        """Start the container, and stay until it has ended."""
        woken = self._listen_for_children()
        os.setsid()
        stage = "group"
        try:
            for group in self._plan["groups"]:
                with open(group, "w") as file:
                    file.write("0")
            stage = "namespace"
            notes = self._isolate()
            stage = "directory"
            self._limit()
            os.chdir(self._plan["directory"])
            os.umask(0o022)
            stage = "program"
            self._main = launching.launch(
                self._plan["command"], self._plan["environment"], output=output
            )
        except (OSError, ValueError) as error:
            self._tell_failed({}, stage, error)
            return
        for each in output:
            os.close(each)
        self._tell({"started": True, "notes": notes})
        while self._status is None and self._attend(woken):
            self._reap()
        self._end_all()
        status = self._status
        self._tell({"ended": None if status is None else os.waitstatus_to_exitcode(status)})

    def _listen_for_children(self) -> int:
        """Have a pipe written to when a child ends; returns its reading end."""
        woken, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        return woken

    def _isolate(self) -> list[str]:
        """Enter the namespaces of the plan; returns what could not be had, in sentences."""
        kernel.set_name(self._plan["title"])
        if not self._is_first:
            kernel.become_subreaper()
        if not self._plan["own_mounts"]:
            return []
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS)
        socket.sethostname(self._plan["hostname"])
        return mounting.mount_all(
            self._plan["mounts"], self._plan["scratch"], own_pids=self._is_first
        )

    def _limit(self) -> None:
        if self._plan["files_max"]:
            soft, hard = self._plan["files_max"]
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if most := self._plan["processes_max"]:
            _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            resource.setrlimit(resource.RLIMIT_NPROC, (most, hard))

    def _attend(self, woken: int) -> bool:
        """Wait for a child's end or a word of the agent's; False when all is to end."""
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        poll.register(self._report, select.POLLIN)
        for descriptor, _ in poll.poll():
            if descriptor == woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4096)
            elif not self._obey():
                return False
        return True

    def _obey(self) -> bool:
        """Do what the agent says; False when all is to end."""
        data, descriptors = messages.receive(self._report)
        if not data:
            return False
        message = messages.decode(data)
        if "kill" in message:
            return False
        if "exec" in message:
            self._exec(cast(int, message["exec"]), descriptors)
        elif "signal" in message:
            self._signal(cast(int, message["signal"]), message.get("to"))
        return True

    def _signal(self, number: int, to: object) -> None:
        """Send a signal to the main process, or to all of a command's."""
        with contextlib.suppress(ProcessLookupError):
            if to is None:
                os.kill(self._main, number)
            for process in [each for each, which in self._execs.items() if which == to]:
                os.killpg(process, number)

    def _exec(self, which: int, descriptors: list[int]) -> None:
        plan = cast(ExecPlan, messages.read_plan(descriptors[0]))
        try:
            process = launching.launch(
                plan["command"],
                plan["environment"],
                output=descriptors[1:],
                terminal=plan["terminal"],
            )
        except (OSError, ValueError) as error:
            self._tell_failed({"exec": which}, "program", error)
        else:
            self._execs[process] = which
        finally:
            for each in descriptors[1:]:
                os.close(each)

    def _reap(self) -> None:
        """Take note of every child that has ended."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._has_children = False
                return
            if process == 0:
                return
            if process == self._main:
                self._status = status
            elif (which := self._execs.pop(process, None)) is not None:
                self._tell({"exec": which, "ended": os.waitstatus_to_exitcode(status)})

    def _end_all(self) -> None:
        """Kill whatever is left, until there is nothing to wait for."""
        self._reap()
        while self._has_children:
            if self._is_first:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
            else:
                sweeping.kill_descendants(os.getpid())
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            self._reap()

    def _tell_failed(self, about: messages.Message, stage: str, error: Exception) -> None:
        told = {
            "failed": stage,
            "errno": getattr(error, "errno", None) or 0,
            "subject": str(getattr(error, "filename", None) or ""),
            "text": str(error),
        }
        self._tell({**about, **told})

    def _tell(self, message: messages.Message) -> None:
        self._report.send(messages.encode(message))
