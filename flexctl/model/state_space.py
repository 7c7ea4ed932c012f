"""Schema of [state_space]: an external law, its matrices and what it measures."""

from typing import Annotated, Any, Literal, Self

from annotated_types import MinLen
from pydantic import BeforeValidator, Field, model_validator

from flexctl.model.record import NOTHING, NonNegative, Number, Record, RefusalError, Text

Matrix = tuple[tuple[Number, ...], ...]


def _in_memory(value: object) -> object:
    """Accept a CasADi function only: a file holds data, never code."""
    if value is not None and not hasattr(value, "n_in"):
        expected = "no such key (a CasADi function lives in memory only, see wrap_controller)"
        raise RefusalError("", expected=expected, got=value)
    return value


class StateSpace(Record):
    """A law z' = A z + B e, tau = C z + D e, or z+ = A z + B e if sampled; or a function.

    `e` are the entries of `measures` in their order: errors, reference minus measurement, of named
    signals, and with the prefix ``measured_`` or ``desired_`` these themselves. tau are torques in
    the order of the joints [N m or N], added to those of `feedforward`. The matrices stand in
    `file` or here; without states A, B and C are left out. `function`, in memory only, is
    (t, z, q_d, v_d, a_d, y) -> (tau, z'), z+ if sampled, y being the measurements themselves.
    `sample_time` [s] is 0 for a continuous law.
    """

    file: Text | None = None
    A: Matrix | None = None
    B: Matrix | None = None
    C: Matrix | None = None
    D: Matrix | None = None
    function: Annotated[Any, BeforeValidator(_in_memory)] = Field(default=None, repr=False)
    measures: Annotated[tuple[Text, ...], MinLen(1)]
    sample_time: NonNegative = 0.0
    feedforward: Literal["gravity"] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        matrices = {"A": self.A, "B": self.B, "C": self.C, "D": self.D}
        other = "file" if self.file is not None else "function" if self.function else None
        for key, value in matrices.items():
            if other and value is not None:
                raise RefusalError(key, expected=f"no such key beside {other}", got=value)
        if self.file is not None and self.function is not None:
            raise RefusalError("file", expected="no such key beside function", got=self.file)
        if not other and self.D is None:
            raise RefusalError("file", expected="a value (or matrices A, B, C, D)", got=NOTHING)
        if len(set(self.measures)) != len(self.measures):
            raise RefusalError("measures", expected="every signal once", got=self.measures)
        return self
