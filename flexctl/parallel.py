"""Independent tasks, done on several cores at once, and linear algebra on one thread."""

from __future__ import annotations

import contextlib
import ctypes as ct
import functools
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")

_SIGNALS = {signal.SIGINT, signal.SIGTERM}  # signals that interrupt a command
_PATIENCE = 5.0  # s to wait for a lock that is held for microseconds
_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG of Linux: the death of the thread that forked
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Limit linear algebra to one thread while a function runs, if the environment sets no number.

    Operations on matrices of some forty rows take twice as long on two threads, which wait for each
    other, and longer on more. The limit holds for the whole process, so for its other threads too.
    """

    @functools.wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> T:
        if any(name in os.environ for name in _THREADS):
            return function(*args, **kwargs)
        with _linear_algebra().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return alone


@functools.cache
def _linear_algebra() -> ThreadpoolController:
    """Return the libraries of linear algebra: modules of such functions have imported them all."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_parallel(tasks: Sequence[Callable[[], T]], processes: int | None = None) -> list[T]:
    """Do independent tasks; their results, which pickle must be able to copy, keep their order.

    Tasks are dealt out to this process and to forks of it, one for every other core, or `processes`
    in all: on Linux, and where OPENBLAS_NUM_THREADS is 1, as the command line has it. A process
    that has done one takes the next. Those that a fork does not manage are done here. Raises the
    error of the first task that has one.
    """
    cores = _cores()
    n = max(1, min(len(tasks), cores, processes or cores))
    if n == 1:
        return [task() for task in tasks]
    deal = _Deal(len(tasks), n)
    with contextlib.ExitStack() as stack:
        forks = [stack.enter_context(_Fork(tasks, deal, k)) for k in range(1, n)]
        known = _before_failure(tasks, deal, 0)
        for fork in forks:
            known |= fork.results()
    return [known[k] if k in known else task() for k, task in enumerate(tasks)]


def _cores() -> int:
    """How many processes may be busy: one in a worker process, and where BLAS takes all cores.

    One too beside other threads at work: a fork would find the locks closed that they hold, such as
    those of cached properties. Threads in the background, as of a progress display, hold none.
    """
    if sys.platform != "linux" or multiprocessing.parent_process():
        return 1
    at_work = [thread for thread in threading.enumerate() if not thread.daemon]
    alone = at_work == [threading.current_thread()]
    single = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    return len(os.sched_getaffinity(0)) if alone and single else 1


class _Deal:
    """Deals out tasks: each process begins with its own number, then takes the lowest left."""

    def __init__(self, count: int, processes: int) -> None:
        self._count, self._processes = count, processes
        self._next: Any = None
        with contextlib.suppress(OSError, ImportError):  # no semaphores
            self._next = multiprocessing.get_context("fork").Value("q", processes)

    def to(self, process: int) -> Iterator[int]:
        """Yield numbers of tasks to a process."""
        if self._next is None:
            yield from range(process, self._count, self._processes)
            return
        k = process
        while k < self._count:
            yield k
            k = self._take(1)

    def end(self) -> None:
        """Deal out no more."""
        if self._next is not None:
            self._take(self._count)

    def _take(self, count: int) -> int:
        if not self._next.get_lock().acquire(timeout=_PATIENCE):  # who had it was killed
            return self._count
        try:
            k = int(self._next.value)
            self._next.value = k + count
        finally:
            self._next.get_lock().release()
        return k


def _before_failure(tasks: Sequence[Callable[[], T]], deal: _Deal, process: int) -> dict[int, T]:
    """Results of the tasks that are dealt to a process, by number, until one fails."""
    results = dict[int, T]()
    try:
        for k in deal.to(process):
            results[k] = tasks[k]()
    except Exception:  # noqa: BLE001 - `in_parallel` raises that of the first task that fails
        deal.end()
    return results


class _Fork(Generic[T]):
    """A copy of this process that does some tasks and sends their results."""

    def __init__(self, tasks: Sequence[Callable[[], T]], deal: _Deal, number: int) -> None:
        self._tasks, self._deal, self._number = tasks, deal, number
        self._parent = os.getpid()
        self._process: ForkProcess | None = None
        self._receiver: Any = None

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("fork")
        with contextlib.suppress(OSError), _undisturbed():  # no more processes, or files
            self._receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=self._work, args=(sender,), daemon=True)
            try:
                process.start()
                self._process = process
            finally:
                sender.close()
        return self

    def _work(self, sender: Connection) -> None:
        # signals may reach the whole group: the parent decides what becomes of it
        for one in _SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        # and where it is killed, nothing else ends this process
        ct.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)
        if os.getppid() != self._parent:
            return
        self._receiver.close()
        with contextlib.suppress(Exception), warnings.catch_warnings(record=True) as caught:
            results = _before_failure(self._tasks, self._deal, self._number)
            sender.send((results, [one.message for one in caught]))
        sender.close()

    def results(self) -> dict[int, T]:
        """Results of its tasks, by number, until one failed; their warnings are given here."""
        if self._process is None:
            return {}
        try:
            results, messages = self._receiver.recv()
        except Exception:  # noqa: BLE001 - it died, or its results cannot be copied
            return {}
        for message in messages:
            warnings.warn(message, stacklevel=3)
        return dict(results)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._receiver is not None:
            self._receiver.close()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back interrupts during a fork, and Python's warning of forks beside threads."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
