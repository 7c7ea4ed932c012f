"""What modes of a sliding line that follow its length offer to the rooms above."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flexctl.beam.legendre_shapes import LegendreShapes
from flexctl.beam.load_path import lengths_within


class LengthShapes(ABC):
    """n modes psi_i(xi; l) = sum over k of B_k(xi) C_ki(ln l) on a range of lengths.

    Attributes
    ----------
    shortest, longest
        Ends of the range [m].
    base
        Fixed shapes B, K of them.
    """

    shortest: float
    longest: float
    base: LegendreShapes

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on of the modes."""

    @abstractmethod
    def mix_at(self, log_length: Any) -> list[list[Any]]:
        """Return C (K lists of n) for s = ln l in any arithmetic, CasADi's too."""

    def at(self, length: ArrayLike) -> LegendreShapes:
        """Return the modes at one length [m].

        Raises
        ------
        InputError
            If it is out of range.
        """
        found = lengths_within(length, self.shortest, self.longest)
        C = np.array(self.mix_at(np.log(found[0])), dtype=float)
        return LegendreShapes(curvatures=C.T @ self.base.curvatures)
