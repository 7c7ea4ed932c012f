"""Points judged on many machines: the workers of a Dask scheduler.

Joblib has a back end for Dask too, but there a worker that dies ends the whole sweep.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import platform
import queue
import re
import time
import uuid
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from flexctl.errors import ComputationError, FlexctlError, FlexctlWarning, InputError
from flexctl.plant import find_compiler, source_digest, why_not_compiled
from flexctl.search.ledger import Row
from flexctl.search.study import Study, Values

_PATIENCE = 10.0  # s in which a scheduler answers, and without a worker that are worth a word
_SILENCE = f"no answer in {_PATIENCE:.0f} s"
_EVERY = 2.0  # s between two looks at how many workers there are
_AHEAD = 2  # tasks that each worker has: one that runs, one that waits
_ADDRESS = re.compile(r"(\w+://)?(\[[0-9A-Fa-f:.]+\]|[^\s/:\[\]]+):\d{1,5}")
_TALKERS = ("distributed", "tornado", "asyncio")  # loggers

Chunk = Sequence[tuple[int, Values]]


class _Call:
    """What pickle turns into the rows of a chunk where it is read: a task.

    Without flexctl a worker fails in such a task, and not at reading it, of which it would end; and
    the scheduler needs no flexctl.
    """

    def __init__(self, *arguments: Any) -> None:
        self._arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return judge_chunk, self._arguments


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A process that judges: on which machine, with what, and why not compiled, or "" if it is."""

    host: str
    process: int
    versions: str
    why_slow: str


def judge_chunk(sources: str, study: bytes, chunk: Chunk) -> tuple[Worker, list[Row]]:
    """Judge points in a worker process.

    Raises
    ------
    InputError
        When the worker has another flexctl than its client, does two tasks at once, or its
        FLEXCTL_CC names no compiler.
    ComputationError
        When an error arises that is no result.
    """
    from distributed import get_worker

    host = platform.node()
    if source_digest() != sources:
        raise InputError(f"worker {host}: expected flexctl and CasADi as here, got other versions")
    threads = get_worker().state.nthreads
    if threads > 1:  # CasADi bears one
        raise InputError(
            f"worker {host}: expected one thread (dask worker --nthreads 1 --nworkers {threads}), "
            f"got {threads}"
        )
    try:
        find_compiler()
    except InputError as error:
        raise InputError(f"worker {host}: {error}") from error
    try:
        judge = pickle.loads(study).judge
        rows = [judge(point, values) for point, values in chunk]
    except Exception as error:  # as text: a client waits for ever for one that cannot be pickled
        what = f"internal error, {type(error).__name__}: {_first_line(error)}"
        raise ComputationError(f"worker {host}: {what}") from error
    # only now it is known whether the compiler works
    slow = why_not_compiled()
    return Worker(host=host, process=os.getpid(), versions=_versions(), why_slow=slow), rows


def _versions() -> str:
    """Versions of what decides on the last digits, beside CasADi."""
    return f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}"


class Cluster:
    """Workers of a Dask scheduler.

    Attributes
    ----------
    address
        Of the scheduler.
    workers
        Processes that have judged.

    Raises
    ------
    InputError
        When the address is none, or Dask is not installed.
    """

    def __init__(self, address: str) -> None:
        if not _ADDRESS.fullmatch(address):
            raise InputError(
                f"scheduler: expected an address such as tcp://host:8786, got {address!r}"
            )
        try:
            import distributed
        except ImportError as error:
            raise InputError(
                "scheduler: expected Dask (pip install 'flexctl[cluster]'), got none"
            ) from error
        self._dask: Any = distributed
        self.address = address
        self.workers = set[Worker]()

    def judge(self, study: Study, chunks: Iterator[Chunk]) -> Iterator[list[Row]]:
        """Judge points; yield the rows of each chunk, in the order in which they arrive.

        What ends the work early, or leaves chunks out, is a warning once there are rows.

        Raises
        ------
        InputError
            When the scheduler does not answer, or workers are not fit.
        ComputationError
            When the scheduler is lost.
        """
        some = False
        try:
            with _silent(), self._connected() as client:
                for rows in self._rows(client, study, chunks):
                    some = True
                    yield rows
        except FlexctlError as error:
            if not some:
                raise
            _warn(f"{error}; what is judged is kept")

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        _in_a_thread(self._greet)
        try:
            client = self._dask.Client(self.address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError, ImportError) as error:
            raise self._no_scheduler(_first_line(error)) from error
        with client:
            yield client

    async def _greet(self) -> None:
        """Ask who is there: a client would wait for ever where something listens in silence."""
        security = self._dask.Security().get_connection_args("client")
        try:
            async with asyncio.timeout(_PATIENCE):
                comm = await self._dask.comm.connect(self.address, _PATIENCE - 1, **security)
                await comm.write({"op": "identity", "reply": True})
                kind = (await comm.read()).get("type")
                comm.abort()
        except TimeoutError as error:
            raise self._no_scheduler(_SILENCE) from error
        except MemoryError as error:  # what says something else than Dask is read as a huge size
            raise self._no_scheduler("another service") from error
        except ValueError as error:  # the scheme
            raise self._no_scheduler(_first_line(error)) from error
        except OSError as error:
            raise self._no_scheduler(_why(error)) from error
        if kind != "Scheduler":
            raise self._no_scheduler(f"a {kind}")

    def _no_scheduler(self, what: str) -> InputError:
        return InputError(f"{self.address}: expected a Dask scheduler, got {what}")

    def _rows(self, client: Any, study: Study, chunks: Iterator[Chunk]) -> Iterator[list[Row]]:
        sources, sent = source_digest(), pickle.dumps(study)
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        out: dict[Any, int] = {}
        crew, missing = _Crew(client, self.address), 0
        chunk = next(chunks, None)
        while chunk or out:
            wanted = _AHEAD * crew.size()
            while chunk and len(out) < wanted:
                task = pickle.dumps(_Call(sources, sent, chunk))
                future = client.submit(pickle.loads, task, key=f"flexctl-{uuid.uuid4()}")
                out[future] = len(chunk)
                future.add_done_callback(ended.put)
                chunk = next(chunks, None)
            some = _some(ended)
            missing += sum(out.pop(future) for future in some)
            for rows in self._answers(client, some):
                missing -= len(rows)
                yield rows
        if missing:
            _warn(
                f"{missing} points are not judged, as every worker that tried them died "
                "(its log may say why)"
            )

    def _answers(self, client: Any, ended: list[Any]) -> Iterator[list[Row]]:
        """Rows of the tasks that have some; of those whose workers died there is nothing."""
        if any(future.cancelled() for future in ended):
            raise _lost(self.address)
        with _reaching(self.address):
            errors = [future.exception() for future in ended if future.status == "error"]
            # those whose worker dies just now, once too often, are skipped
            found = client.gather([one for one in ended if one.status == "finished"], "skip")
        for worker, rows in found:
            self._meet(worker)
            yield rows
        for error in errors:
            self._raise(error)

    def _raise(self, error: Exception) -> None:
        """Raise the error of a task, unless its workers died of it."""
        if isinstance(error, self._dask.KilledWorker):
            return
        if isinstance(error, ImportError | AttributeError):
            raise InputError(
                f"{self.address}: expected workers with flexctl as here, got one without: "
                f"{_first_line(error)}"
            ) from error
        raise error

    def _meet(self, worker: Worker) -> None:
        if worker in self.workers:
            return
        self.workers.add(worker)
        if worker.why_slow:
            _warn(
                f"worker {worker.host}: not compiled ({worker.why_slow}): full verdicts take many "
                "times as long"
            )
        if worker.versions != _versions():
            _warn(
                f"worker {worker.host}: {worker.versions}, but {_versions()} here: last digits "
                "may differ"
            )


class _Crew:
    """How many workers a scheduler has; says so where there are none."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self._size, self._asked, self._seen = 0, -np.inf, time.monotonic()

    def size(self) -> int:
        now = time.monotonic()
        if now > self._asked + _EVERY:
            if self._client.status != "running":
                raise _lost(self._address)
            with _reaching(self._address):
                self._size, self._asked = len(self._client.nthreads()), now
            if self._size:
                self._seen = now
            elif now > self._seen + _PATIENCE:
                _warn(f"{self._address}: no worker in {_PATIENCE:.0f} s, waiting for one")
                self._seen = np.inf
        return self._size


def _some(ended: queue.SimpleQueue[Any]) -> list[Any]:
    """Tasks that have ended, after a second perhaps none."""
    some = list[Any]()
    with contextlib.suppress(queue.Empty):
        some.append(ended.get(timeout=1.0))
        while True:
            some.append(ended.get_nowait())
    return some


def _lost(address: str) -> ComputationError:
    return ComputationError(f"{address}: the scheduler is gone")


@contextlib.contextmanager
def _reaching(address: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _lost(address) from error


def _why(error: BaseException | None) -> str:
    """Why there is no connection, as the system says."""
    while error:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__
    return _SILENCE


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _in_a_thread(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine, also where a loop runs already, as in a notebook."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(work())).result()


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what Dask logs of lost workers and schedulers from standard error: it is said here."""
    talkers = [
        one
        for name, one in logging.root.manager.loggerDict.items()
        if name.partition(".")[0] in _TALKERS
        and isinstance(one, logging.Logger)
        and not one.disabled
    ]
    for talker in talkers:
        talker.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="distributed")
            yield
    finally:
        for talker in talkers:
            talker.disabled = False


def _warn(message: str) -> None:
    warnings.warn(message, FlexctlWarning, stacklevel=2)
