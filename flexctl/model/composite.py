"""Schema of composite control: the angle that the slow law measures, and the fast loop."""

from typing import Annotated, Literal, Self

from annotated_types import Ge, MinLen
from pydantic import Field, Strict, model_validator

from flexctl.model.record import (
    NOTHING,
    Flag,
    NonNegative,
    Numbers,
    Positive,
    Record,
    RefusalError,
    Text,
    Unquoted,
)

SlowAngle = Literal["link", "rotor"]


class SlowLoop(Record):
    """Which angle of a flexible joint the slow law measures: its link's or its rotor's."""

    angle: SlowAngle = "rotor"


class FastWeights(Record):
    """Weights of the fast loop's cost, in terms that mean the same in every basis."""

    strain_energy: NonNegative = 0.0
    kinetic_energy: NonNegative = 0.0
    effort: Positive

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not (self.strain_energy or self.kinetic_energy):
            raise RefusalError("strain_energy", expected="this or kinetic_energy above 0", got=0)
        return self


class FastLoop(Record):
    """Feedback of the fast positions, always on: with `weights`, or with given `Kp` and `Kv`.

    tau_f = -Kp (z - z_qs) - Kv z'; z_qs = 0 where `quasi_steady` is false. Gains (m rows) are
    for the fast positions that `columns` names. `scaled` gains multiply positions k_c z and rates
    in fast time, k_c being the least stiffness: Kp k_c and Kv sqrt(k_c) are physical. `modes` says
    how modal coordinates are normalised: by their deflection at the tip being 1, or by their full
    "mass" (line and tip load) being the line's; absent: int psi^2 dxi = 1, as everywhere.
    `schedule` is the number of poses along the path at which weights are turned into gains; 0: at
    its end only.
    """

    weights: FastWeights | None = None
    Kp: Annotated[tuple[Numbers, ...], MinLen(1)] | None = None
    Kv: Annotated[tuple[Numbers, ...], MinLen(1)] | None = None
    columns: Annotated[tuple[Text, ...], MinLen(1)] | None = None
    scaled: Flag = False
    modes: Literal["tip", "mass"] | None = None
    quasi_steady: Flag = True
    schedule: Annotated[int, Strict(), Ge(0), Field(le=50)] = 0

    @model_validator(mode="after")
    def _check(self) -> Self:
        entries = {"Kp": self.Kp, "Kv": self.Kv, "columns": self.columns}
        for key, value in entries.items():
            if self.weights and value is not None:
                raise RefusalError(key, expected="no such key beside weights", got=value)
            if not self.weights and value is None:
                expected = "a value, as there are no weights"
                raise RefusalError(key, expected=expected, got=NOTHING)
        return self._check_designed() if self.weights else self._check_gains(self.columns or ())

    def _check_designed(self) -> Self:
        for key, value in (("scaled", self.scaled), ("modes", self.modes)):
            if value:
                raise RefusalError(key, expected="no such key beside weights", got=value)
        if self.schedule == 1:
            raise RefusalError("schedule", expected="0, or at least 2 poses", got=1)
        return self

    def _check_gains(self, columns: tuple[str, ...]) -> Self:
        if len(set(columns)) != len(columns):
            raise RefusalError("columns", expected="every fast position once", got=columns)
        for key, rows in (("Kp", self.Kp or ()), ("Kv", self.Kv or ())):
            lengths = [len(row) for row in rows]
            if set(lengths) != {len(columns)}:
                expected = f"{len(columns)} numbers in every row, one per entry of columns"
                got = Unquoted("rows of " + ", ".join(map(str, lengths)))
                raise RefusalError(key, expected=expected, got=got)
        if self.schedule:
            expected = "no such key, as gains are given and not designed"
            raise RefusalError("schedule", expected=expected, got=self.schedule)
        return self
