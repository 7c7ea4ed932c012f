"""Equations and functions that plants of one content share: made once in a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from flexctl.plant.equations import Equations
from flexctl.plant.functions import PlantFunctions

_N_KEPT = 12  # contents that stay in memory: those of a comparison on several meshes
_KEPT: dict[str, SharedEquations] = {}


@dataclass(frozen=True, kw_only=True)
class SharedEquations:
    """Equations of motion and their functions, both made when they are first asked for."""

    make: Callable[[], Equations]

    @cached_property
    def equations(self) -> Equations:
        """The terms of the equations of motion."""
        return self.make()

    @cached_property
    def functions(self) -> PlantFunctions:
        """All functions of these equations, by name."""
        return PlantFunctions(lambda: self.equations)


def share_equations(content: str, make: Callable[[], Equations]) -> SharedEquations:
    """Return the equations of a content, `Plant.content`: those made before, or else by `make`.

    The contents asked for last are kept.
    """
    shared = _KEPT.pop(content, None) or SharedEquations(make=make)
    _KEPT[content] = shared
    while len(_KEPT) > _N_KEPT:
        _KEPT.pop(next(iter(_KEPT)))
    return shared
