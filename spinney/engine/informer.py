"""The informer: makes a Reader of any Source. It lags, and it never goes back.

informer = Informer(source, kinds, clock, entropy, metrics)
async with asyncio.TaskGroup() as group:
    group.create_task(informer.run())
    await informer.wait_synced()
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from spinney.api.kinds import Kind
from spinney.engine import logs
from spinney.engine.following import Following, Instruction, List, State, Wait, Watch
from spinney.engine.metrics import Gauge, Metrics
from spinney.engine.validation import Validation
from spinney.engine.verdicts import Refusal
from spinney.meta.errors import DecodeError, Expired, InvariantViolation
from spinney.meta.indexes import Extract, Objects
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Clock, Entropy, Source, WatchEvent

R = TypeVar("R", bound=Record)

PAGE_ITEMS: Final = 500
"""How many objects are asked for at once."""

_log = logs.logger("engine")


class KindStatistics(Record):
    """How the view of one kind stands."""

    objects: int
    seen: int
    state: str
    is_synced: bool


class Informer:
    """Implements `ports.Reader` over a Source."""

    def __init__(
        self,
        source: Source,
        kinds: Iterable[Kind],
        clock: Clock,
        entropy: Entropy,
        metrics: Metrics,
    ) -> None:
        """Follow objects of these kinds once it runs."""
        self._source = source
        self._clock = clock
        self._metrics = metrics
        self._objects = Objects()
        self._listeners: dict[GroupKind, list[Callable[[Ref, Change], None]]] = {}
        self._kind_of: dict[type[Record], GroupKind] = {}
        self._following: dict[GroupKind, Following] = {}
        for kind in kinds:
            group_kind = kind.names.group_kind
            if kind.record in self._kind_of:
                raise InvariantViolation(
                    f"{group_kind} and {self._kind_of[kind.record]} are read as one record"
                )
            self._kind_of[kind.record] = group_kind
            self._following[group_kind] = Following(group_kind, self._objects, entropy, self._tell)
        self._synced = asyncio.Event()
        self._validation = Validation(self.validate, lambda: len(self._objects))
        metrics.watch(self._gauges)

    # Reading

    def get(self, record: type[R], namespace: str, name: str) -> R | None:
        """Return an object, None where there is none; raises DecodeError where it fits not."""
        ref = Ref(kind=self._followed(record), namespace=namespace, name=name)
        stored = self._objects.get(ref)
        return None if stored is None else stored.view(record)

    def list(
        self, record: type[R], *, namespace: str | None = None, by: tuple[str, str] | None = None
    ) -> Sequence[R]:
        """Return objects sorted by Ref; raises DecodeError naming one that fits not."""
        found = self._objects.list(self._followed(record), namespace, by)
        return [stored.view(record) for stored in found]

    def seen(self, kind: GroupKind) -> int:
        """Return the newest version this view holds of a kind; 0 for one it does not follow."""
        following = self._following.get(kind)
        return 0 if following is None else following.seen

    def on_change(self, kind: GroupKind, call: Callable[[Ref, Change], None]) -> None:
        """Have a function called after each change of a kind, in order.

        A `BOOKMARK` for the kind's empty name says that the view is newer, though no object of it
        need have changed.
        """
        self._listeners.setdefault(kind, []).append(call)

    def register(self, kind: GroupKind, index_name: str, extract: Extract) -> None:
        """Give a kind an index of a name of its own, for `by`."""
        self._objects.register(kind, index_name, extract)

    def _followed(self, record: type[Record]) -> GroupKind:
        kind = self._kind_of.get(record)
        if kind is None:
            raise InvariantViolation(f"{record.__name__} is read, but its kind is not followed")
        return kind

    def _tell(self, ref: Ref, change: Change) -> None:
        for call in self._listeners.get(ref.kind, ()):
            try:
                call(ref, change)
            except Exception:  # noqa: BLE001 - the others must be told too
                said = logs.fields(object=ref, change=change.value)
                _log.exception("a listener failed", extra=said)

    # Following

    async def run(self) -> None:
        """Follow every kind, until cancelled."""
        tasks = [
            asyncio.create_task(self._follow(each), name=f"informer of {each.kind}")
            for each in self._following.values()
        ]
        if not tasks:
            self._synced.set()
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def wait_synced(self) -> None:
        """Wait until every kind was listed once."""
        await self._synced.wait()

    async def _follow(self, following: Following) -> None:
        instruction = following.start()
        while True:
            instruction = await self._obey(following, instruction)
            self._validation.step()

    async def _obey(self, following: Following, instruction: Instruction) -> Instruction:
        """Do what the machine asks for; returns what it asks for next."""
        try:
            match instruction:
                case Wait(duration=duration):
                    await self._clock.sleep(duration)
                    return following.rang(self._clock.elapsed())
                case List(token=token):
                    page = await self._source.list(following.kind, limit=PAGE_ITEMS, token=token)
                    after = following.page(page, self._clock.elapsed())
                    self._note_synced()
                    return after
                case Watch(since=since, why=why):
                    self._metrics.count("spinney_watches_total", following.kind.kind, why)
                    await self._watch(following, since)
                    return following.ended(self._clock.elapsed())
        except Expired:
            self._metrics.count("spinney_watches_total", following.kind.kind, "expired")
            _log.info("listing anew", extra=logs.fields(kind=following.kind))
            return following.expired()
        except (*Refusal, DecodeError) as error:
            said = logs.fields(kind=following.kind, why=str(error) or type(error).__name__)
            _log.warning("a list or watch failed", extra=said)
            return following.failed()

    async def _watch(self, following: Following, since: str) -> None:
        events: AsyncIterator[WatchEvent] = self._source.watch(following.kind, since)
        try:
            async for event in events:
                following.event(event)
                self._validation.step()
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    def _note_synced(self) -> None:
        if all(each.is_synced for each in self._following.values()):
            self._synced.set()

    # Looking at it

    def statistics(self) -> Mapping[GroupKind, KindStatistics]:
        """Return how the view of each kind stands."""
        return {
            kind: KindStatistics(
                objects=len(self._objects.list(kind, None, None)),
                seen=following.seen,
                state=following.state.value,
                is_synced=following.is_synced,
            )
            for kind, following in self._following.items()
        }

    def _gauges(self) -> Iterable[Gauge]:
        for kind, found in self.statistics().items():
            label = (str(kind),)
            is_alive = found.is_synced and found.state == State.WATCHING.value
            yield Gauge(name="spinney_cache_objects", value=found.objects, labels=label)
            yield Gauge(name="spinney_cache_synced", value=int(is_alive), labels=label)

    def validate(self) -> None:
        """Check every kind; raises InvariantViolation."""
        for following in self._following.values():
            following.validate()
