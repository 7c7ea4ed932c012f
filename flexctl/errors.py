"""What can go wrong, as types: every error that flexctl raises on purpose is one of these."""

from __future__ import annotations

from typing import Any


class FlexctlError(Exception):
    """Base of all errors that flexctl raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle without a call of `__init__`, which may take more than the message."""
        return _made_again, (type(self), self.args), vars(self)


def _made_again(kind: type[FlexctlError], args: tuple[Any, ...]) -> FlexctlError:
    return kind.__new__(kind, *args)


class InputError(FlexctlError, ValueError):
    """Bad input; the message names the key, the expected and the given value.  Exit status 2."""


class DesignError(FlexctlError, ValueError):
    """A controller that cannot be made from this plant and these weights.  Exit status 3."""


class ComputationError(FlexctlError, RuntimeError):
    """A computation that failed or cannot be trusted; the message says what to try.

    Exit status 3.
    """


class NoEquilibriumError(ComputationError):
    """A closed loop that has no equilibrium where one is required."""


class RunError(ComputationError):
    """A simulation that could not be finished: `time` [s] where it ended, and `why`, in words.

    `exhausted` says that it ran out of steps: that is no statement about the loop.
    """

    def __init__(self, message: str, *, time: float, why: str, exhausted: bool = False) -> None:
        """Keep when and why beside the message."""
        super().__init__(message)
        self.time = time
        self.why = why
        self.exhausted = exhausted


class FlexctlWarning(UserWarning):
    """A caution about a result that remains valid; one line on standard error."""
