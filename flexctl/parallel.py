"""Tasks that need nothing of each other, done on several cores at once."""

from __future__ import annotations

import contextlib
import ctypes as ct
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

T = TypeVar("T")

_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG of Linux


def in_parallel(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Do tasks and return their results in order, which pickle must be able to copy.

    They are dealt out to this process and to forks of it, one for every other core: on Linux, and
    where OPENBLAS_NUM_THREADS is 1, as the command line has it. What fails in a fork is done again
    here: errors are those of one task after another.
    """
    n = max(1, min(len(tasks), _cores()))
    forks = [_Fork(tasks[k::n]) for k in range(1, n)]
    try:
        done = [[task() for task in tasks[::n]], *(fork.results() for fork in forks)]
    finally:
        for fork in forks:
            fork.end()
    return [done[k % n][k // n] for k in range(len(tasks))]


def _cores() -> int:
    """How many processes may be busy: one in a worker process, and where BLAS takes all cores."""
    if sys.platform != "linux" or multiprocessing.parent_process():
        return 1
    alone = os.environ.get("OPENBLAS_NUM_THREADS") == "1"
    return len(os.sched_getaffinity(0)) if alone else 1


class _Fork(Generic[T]):
    """A copy of this process that does some tasks and sends their results."""

    def __init__(self, tasks: Sequence[Callable[[], T]]) -> None:
        self._tasks, self._beginner = tasks, os.getpid()
        context = multiprocessing.get_context("fork")
        self._results, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=self._work, args=(sender,), daemon=True)
        with warnings.catch_warnings():
            # Python warns of forks beside threads, whose locks might never open again: the tasks
            # compute, and wait for none that another thread of ours holds
            warnings.simplefilter("ignore", DeprecationWarning)
            with contextlib.suppress(OSError):  # no more processes: `results` does the tasks
                self._process.start()
        sender.close()

    def _work(self, sender: Connection) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # who began it ends it, see `end`,
        ct.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)  # or is killed
        if os.getppid() != self._beginner:
            return
        self._results.close()
        try:
            with warnings.catch_warnings(record=True) as caught:
                results = [task() for task in self._tasks]
            sender.send((results, [one.message for one in caught]))
        except BaseException:  # noqa: BLE001 - done again by `results`
            sender.close()

    def results(self) -> list[T]:
        """Results of the tasks, whose warnings are given here."""
        try:
            results, messages = self._results.recv()
        except EOFError:
            return [task() for task in self._tasks]
        for message in messages:
            warnings.warn(message, stacklevel=3)
        return list(results)

    def end(self) -> None:
        """Stop what is still at work."""
        if self._process.pid:
            self._process.kill()
            self._process.join()
        self._results.close()
