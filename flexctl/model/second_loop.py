"""Schema of the second loop: LQR about the decoupled arm, once the joints have arrived."""

from typing import Annotated, Self

from pydantic import BeforeValidator, model_validator

from flexctl.model.record import NonNegative, Positive, Record, RefusalError, Solver


def _hard_switch(value: object) -> object:
    """Read "end" as no blend: the second loop takes over at the end of the gross motion."""
    if isinstance(value, dict):
        return value
    if value is None or value == "end":  # None: a record that is rebuilt
        return None
    raise RefusalError("", expected='"end" or { blend = seconds }', got=value)


class Weights(Record):
    """Weights of the second loop's cost, in terms that mean the same in every basis."""

    joint_error: NonNegative = 0.0
    joint_rate: NonNegative = 0.0
    strain_energy: NonNegative = 0.0
    kinetic_energy: NonNegative = 0.0
    effort: Positive

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not any((self.joint_error, self.joint_rate, self.strain_energy, self.kinetic_energy)):
            raise RefusalError("joint_error", expected="one weight beside effort above 0", got=0)
        return self


class Blend(Record):
    """Fade the second loop in over `blend` [s] from the end of the gross motion."""

    blend: Positive


class SecondLoop(Record):
    """LQR loop about the decoupled arm; `switch` is None where it starts at once at the end."""

    weights: Weights
    switch: Annotated[Blend | None, BeforeValidator(_hard_switch)] = None
    solver: Solver = "scipy"
