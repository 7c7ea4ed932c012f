"""Interrupts that are heard: Ctrl-C and SIGTERM end a command, wherever in it they meet it.

Python raises KeyboardInterrupt between two of its own instructions. In libraries that call Python
back (CasADi's conversions of arguments) an exception may be cleared before it arrives, and in
machine code that runs for long nothing is raised at all. So a thread watches: what is not over a
second after the signal is interrupted once more, and what is not over then is ended: at once where
no signal was heeded before and there is nothing to keep, otherwise by the next one.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Collection, Iterator

PATIENCE = 0.8  # s from one attempt to the next
_WAITING = "flexctl: ends after the run in progress; once more ends it now, with nothing written\n"
_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
signalled = threading.Event()
"""Set once the command that runs has met an interrupt, whatever a library made of it."""


class _Watch:
    """What a signal and the thread that watches know of each other."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.raising = True  # whether the next signal shall raise
        self.keeping = False  # whether there are results, which an end at once would lose
        self.waited = False  # whether a signal has been waiting for machine code because of them

    def handle(self, _signal: int, _frame: object) -> None:
        """Raise once, so that what tidies up is not interrupted in turn."""
        signalled.set()
        if self.raising:
            self.raising = False
            raise KeyboardInterrupt

    def watch(self, reading: int, own: Collection[int], end: Callable[[], None]) -> None:
        """Wait for its own signals, and see to it that the command ends.

        Once one was heeded the command ends in its own time: a later one that is lost is raised
        again, and only another one after that ends it. So does the first where there are results.
        """
        patient = False
        while heard := os.read(reading, 1):
            if heard[0] not in own:
                continue  # of other handlers of the process
            if not self.over.wait(PATIENCE):
                self.raising = True
                _thread.interrupt_main(signal.Signals(heard[0]))
                if not self.over.wait(PATIENCE) and not patient:
                    if self.waited or not self.keeping:
                        end()
                    else:
                        self.waited = True
                        _say(_WAITING)
            patient = self.over.is_set()
            _drop(reading)  # what came before it was heeded, and what `interrupt_main` wrote
            self.over.clear()


def _drop(reading: int) -> None:
    """Read what is there."""
    while select.select([reading], [], [], 0.0)[0] and os.read(reading, 64):
        pass


def _say(line: str) -> None:
    """Write to standard error, which may take nothing."""
    with contextlib.suppress(OSError):
        os.write(2, line.encode())


_watches = list[_Watch]()


def keep() -> None:
    """Say that there are results, which an interrupt shall not lose to a long run."""
    for watch in _watches:
        watch.keeping = True


def heeded() -> None:
    """Say that the interrupt has arrived: the command ends in its own time, or at the next one."""
    for watch in _watches:
        watch.over.set()
        watch.raising = True


@contextlib.contextmanager
def heard(end: Callable[[], None], *, last: bool) -> Iterator[None]:
    """Within, an interrupt raises KeyboardInterrupt, again if it was lost, and at last calls `end`.

    After one, further interrupts are ignored where this is the `last` that the process does.
    Where this is not the main thread, or a program has its own handler of Ctrl-C, nothing changes;
    a signal that is ignored stays ignored.
    """
    main = threading.current_thread() is threading.main_thread()
    main &= signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)
    own = {one: default for one, default in _DEFAULTS.items() if signal.getsignal(one) == default}
    if not main or not own:
        yield
        return
    signalled.clear()
    watch, (reading, writing) = _Watch(), os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=watch.watch, args=(reading, own, end), daemon=True)
    thread.start()
    _watches.append(watch)
    for one in own:
        signal.signal(one, watch.handle)
    try:
        yield
    finally:
        watch.over.set()
        _watches.remove(watch)
        signal.set_wakeup_fd(before)
        leaving = last and not watch.raising
        for one, default in own.items():
            signal.signal(one, signal.SIG_IGN if leaving else default)
        os.close(writing)  # the thread reads the end of the pipe
        thread.join()
        os.close(reading)
