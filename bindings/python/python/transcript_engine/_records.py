"""The records of a running function."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _transcript  # pyright: ignore[reportPrivateUsage]
from ._errors import TranscriptError

if TYPE_CHECKING:
    import asyncio

Record = TypeVar("Record")
Json = dict[str, Any]


def call(function: str, options: dict[str, Any]) -> _transcript.Records:
    """Start a function; options that are ``None`` are those by default."""
    given = {name: value for name, value in options.items() if value is not None}
    # Values that JSON does not have are paths.
    return _transcript.call(json.dumps({"function": function, **given}, default=os.fsdecode))


def several(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None) -> list[str | os.PathLike[str]] | None:
    """Return a list of names or places; a text is one of them, and not those that its letters are."""
    if given is None:
        return None
    if isinstance(given, (str, os.PathLike)):
        return [given]
    return list(given)


def parts(batch: bytes) -> tuple[list[Any], bytes]:
    """Divide a batch into its records and the texts that they name by their places."""
    end = 4 + int.from_bytes(batch[:4], "little")
    return parsed(batch[4:end]), batch[end:]


def parsed(text: str | bytes) -> Any:
    """Parse JSON, whatever is in a file: Python makes no integer of more than 4,300 digits, which is a float then, as in
    JavaScript.
    """
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(text, parse_int=_number)


def _number(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def every(records: _transcript.Records) -> list[Any]:
    """Wait for all records."""
    found: list[Any] = []
    while (batch := records.wait()) is not None:
        found += parts(batch)[0]
    return found


class _Pending:
    """A batch that was asked for, and not taken yet. Whoever reads next takes it, in whichever thread or event loop."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.answer: tuple[bytes | None, TranscriptError | None] = (None, None)
        self._arrived = threading.Event()
        self._wakers: list[Callable[[], object]] = []

    def settle(self, batch: bytes | None, error: TranscriptError | None) -> None:
        self.answer = (batch, error)
        self._arrived.set()
        while self._wakers:
            self._wakers.pop()()

    def wait(self) -> None:
        self._arrived.wait()

    async def waiting(self) -> None:
        if (found := _in_trio()) is not None:
            trio, token = found
            event = trio.Event()

            def wake_trio() -> None:
                # After the end of the run no task waits in it.
                with contextlib.suppress(RuntimeError):
                    token.run_sync_soon(event.set)

            self._wakers.append(wake_trio)
            if not self._arrived.is_set():
                await event.wait()
            return

        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            # After a loop was closed no task waits in it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: future.done() or future.set_result(None))

        self._wakers.append(wake)
        if not self._arrived.is_set():
            await future


class Records(Generic[Record]):
    """Records that a function finds, as they are found.

    Iterate with ``for`` or with ``async for``; neither blocks other threads, and ``async for`` does not block the
    event loop. Several threads and tasks may read the same records: each goes to one of them. The function runs on another
    thread, at most 16 MiB ahead; a follow has none while it waits. :meth:`close`, the end of a ``with`` block, or dropping the object ends it.
    """

    def __init__(
        self,
        function: str,
        options: dict[str, Any],
        read: Callable[[bytes], list[Record]],
    ) -> None:
        self._records = call(function, options)
        self._read = read
        self._batch: Iterator[Record] = iter(())
        self._done = False
        self._lock = threading.Lock()
        self._pending: _Pending | None = None

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        while True:
            for record in self._batch:
                return record
            pending = self._ask()
            if pending is None:
                raise StopIteration
            pending.wait()
            self._take(pending)

    def __aiter__(self) -> AsyncIterator[Record]:
        return self

    async def __anext__(self) -> Record:
        while True:
            for record in self._batch:
                return record
            pending = self._ask()
            if pending is None:
                raise StopAsyncIteration
            # A task that is cancelled, as by a timeout, leaves the batch that it waited for to the next reader.
            await pending.waiting()
            self._take(pending)

    def _ask(self) -> _Pending | None:
        """Ask for the next batch, unless it was asked for; ``None`` after the last."""
        with self._lock:
            if self._done:
                return None
            pending = self._pending
            # A child of `os.fork` has no thread that would answer what its parent asked for: it gets an error.
            if pending is None or pending.process != os.getpid():
                pending = self._pending = _Pending()
                self._records.then(pending.settle)
            return pending

    def _take(self, pending: _Pending) -> None:
        """Take a batch that has arrived, unless another reader has."""
        with self._lock:
            if self._pending is not pending:
                return
            self._pending = None
            batch, error = pending.answer
            if error is not None:
                raise error
            if batch is None:
                self._done = True
            elif not self._done:
                left = list(self._batch)
                self._batch = iter([*left, *self._read(batch)])

    def close(self) -> None:
        """End the function. A caller that waits gets no more records."""
        self._done = True
        self._batch = iter(())
        self._records.close()

    async def aclose(self) -> None:
        """End the function, as :meth:`close` does."""
        self.close()

    def ready(self) -> None:
        """Wait until the function has started: what is written after that to the files that it follows is returned.
        A ``with`` block waits by itself.
        """
        self._records.wait_ready()

    def __enter__(self) -> Records[Record]:
        self.ready()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Records[Record]:
        await waiting(self._records.when_ready)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _in_trio() -> tuple[Any, Any] | None:
    """Return trio and its token if a task of trio calls this; ``None`` in a task of asyncio. Whoever runs trio, be it by
    anyio, has imported it.
    """
    trio: Any = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        return trio, trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def begin(start: Callable[[Callable[[Any, TranscriptError | None], object]], Any]) -> asyncio.Future[Any]:
    """Return the future answer of what `start` starts: what it returns, unless it is ``None`` and the answer is given later,
    on another thread.
    """
    # Most programs that import this package have no event loop, and asyncio takes longer to import than all the rest.
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    # After the loop was closed no task waits: the native part ignores the RuntimeError about it.
    wake: Any = loop.call_soon_threadsafe
    answer = start(partial(wake, _settle, future))
    if answer is not None:
        future.set_result(answer)
    return future


async def waiting(start: Callable[[Callable[[Any, TranscriptError | None], object]], Any]) -> Any:
    """Wait for the answer of what `start` starts."""
    if (found := _in_trio()) is None:
        return await begin(start)
    trio, token = found
    event = trio.Event()
    answers: list[tuple[Any, TranscriptError | None]] = []

    def done(answer: Any, error: TranscriptError | None) -> None:
        answers.append((answer, error))
        # After the end of the run no task waits: the native part ignores the RuntimeError about it.
        token.run_sync_soon(event.set)

    answer = start(done)
    if answer is not None:
        return answer
    await event.wait()
    answer, error = answers[0]
    if error is not None:
        raise error
    return answer


def _settle(future: asyncio.Future[Any], answer: Any, error: TranscriptError | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(answer)


def read_json(batch: bytes) -> list[Any]:
    return parts(batch)[0]
