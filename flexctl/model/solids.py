"""Schema of rigid bodies: hubs, payloads, masses on a line."""

from typing import Annotated, Self

from annotated_types import Ge, Le
from pydantic import BeforeValidator, model_validator

from flexctl.model.record import NonNegative, Number, Record, RefusalError, Vector, exactly

Inertia = Annotated[
    tuple[NonNegative, NonNegative, NonNegative], BeforeValidator(lambda v: exactly(3, v))
]


class RigidBody(Record):
    """Mass [kg], centre of mass [m] and principal inertias about it [kg m^2].

    A single nonzero inertia, as in [0, 0, J], is allowed as a shorthand for planar arms, although
    no rigid body has it.
    """

    mass: NonNegative = 0.0
    com: Vector = (0.0, 0.0, 0.0)
    inertia: Inertia = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_inertia(self.inertia)
        return self


class CarriedMass(Record):
    """A mass [kg] on a line's axis at `x` = x/l, such as a motor or a sensor, that moves with it.

    Principal inertias about it [kg m^2] in the axes of the line, which lies along x; one alone is
    allowed as in `RigidBody`.
    """

    x: Annotated[Number, Ge(0), Le(1)]
    mass: NonNegative = 0.0
    inertia: Inertia = (0.0, 0.0, 0.0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_inertia(self.inertia)
        return self


def _check_inertia(inertia: tuple[float, float, float]) -> None:
    largest, others = max(inertia), sum(inertia) - max(inertia)
    if others > 0 and largest > others * (1 + 1e-9):
        expected = "none larger than the other two together, or only one above 0"
        raise RefusalError("inertia", expected=expected, got=inertia)
