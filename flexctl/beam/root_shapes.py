"""A sliding line's exact modes by root finding: the frequency equation solved at every length."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from flexctl.beam.frequency_equation import AnyLoad, elementary
from flexctl.beam.legendre_shapes import LegendreShapes, LengthShapes
from flexctl.beam.load_path import SlidingLine, check_range
from flexctl.beam.root_modes import RootModes, fit_root_modes
from flexctl.beam.shapes import mode_names
from flexctl.checks import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class RootShapes(LengthShapes):
    """The n lowest modes of a sliding line on a range of lengths, m(psi, psi) = 1 with its load.

    Roots are accurate to round-off at every length, shapes to the error of the base, 1e-9 of psi''.

    Attributes
    ----------
    line
        The line and the body that it carries.
    shortest, longest
        Ends of the range [m].
    base
        Fixed shapes B, K of them.
    modes
        The modes as functions of s = ln l.
    """

    line: SlidingLine
    shortest: float
    longest: float
    base: LegendreShapes
    modes: RootModes

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on of the modes."""
        return mode_names(self.modes.n)

    def load_at(self, log_length: Any) -> AnyLoad:
        """Return M, J, D and M J - D^2 for s = ln l in any arithmetic."""
        unit, per_length = self.line.tip(1.0), elementary("exp", -log_length)
        M, D, J = (
            x * per_length**p for p, x in enumerate((unit.mass, unit.offset, unit.inertia), start=1)
        )
        return M, J, D, unit.determinant * per_length**4

    def mix_at(self, log_length: Any) -> list[list[Any]]:
        """Return C (K lists of n) for s = ln l in any arithmetic, CasADi's too."""
        return self.modes.mix_at([log_length], self.load_at(log_length))


def fit_root_shapes(n: int, line: SlidingLine, shortest: float, longest: float) -> RootShapes:
    """Fit the n lowest modes of a sliding line on a range of lengths [m].

    Raises
    ------
    InputError
        If the range is invalid.
    ComputationError
        If Newton's method does not find the roots on all of it.  Source: [TG95], 4.2.
    """
    check_range(shortest, longest, 1e-12)

    def loads(parameters: Array) -> Any:
        return line.loads(np.exp(parameters[:, 0]))

    low, high = np.log([shortest]), np.log([longest])
    modes = fit_root_modes(n, loads, low, high)
    return RootShapes(line=line, shortest=shortest, longest=longest, base=modes.base, modes=modes)
