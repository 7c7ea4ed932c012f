"""Schema of a line's torsion."""

from flexctl.model.record import Positive, Record

TWIST = "twist"
"""The plane that is none: the line turns about itself."""


class Torsion(Record):
    """Twist of a line about itself, from a clamped root.

    `GJ` [N m^2] torsional rigidity; absent: the line does not twist.  `polar_inertia` rho I_p
    [kg m] of the sections about the line.
    """

    GJ: Positive | None = None
    polar_inertia: Positive
