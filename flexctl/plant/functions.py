"""The functions of a plant, by name, as CasADi functions of its equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from flexctl.plant.equations import Equations

DYNAMICS = (
    "mass_matrix",
    "inverse_dynamics",
    "energies",
    "gravity",
    "elastic_force",
    "tip",
    "line_tips",
    "deflections",
)
LINEARISATION = (
    "damping",
    "tangent_stiffness",
    "elastic_stiffness",
    "tip_jacobian",
    "line_tips_jacobian",
    "deflections_jacobian",
)
DERIVATIVES = ("derivatives", "derivatives_at_rest")
MATRICES = {
    *DERIVATIVES,
    "elastic_stiffness",
    "mass_matrix",
    "damping",
    "tangent_stiffness",
    "line_tips",
    "tip_jacobian",
    "line_tips_jacobian",
    "deflections_jacobian",
}

Parts = tuple[list[ca.SX], list[ca.SX]]


class PlantFunctions(Mapping[str, ca.Function]):
    """CasADi functions with dense results, each built on first use.

    Inputs are named q, v, a and tau, outputs as in `_OUTPUTS`. Unknown errors of the stiffness and
    free numbers of the arm are the last inputs of every function.
    """

    def __init__(self, equations: Callable[[], Equations]) -> None:
        """Keep the builder of the equations, which are also built only when needed."""
        self._equations = equations
        self._made: dict[str, ca.Function] = {}

    def __getitem__(self, name: str) -> ca.Function:
        if name not in self._made:
            equations = self._equations()
            inputs, outputs = _PARTS[name](equations)
            dense = [ca.densify(output) for output in outputs]
            inputs = [*inputs, *equations.unknown]
            names = _input_names(equations, inputs), list(_OUTPUTS[name])
            self._made[name] = ca.Function(name, inputs, dense, *names, {"cse": True})
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PARTS)

    def __len__(self) -> int:
        return len(_PARTS)


def _of_q(expression: Callable[[Equations], ca.SX]) -> Callable[[Equations], Parts]:
    return lambda e: ([e.q], [expression(e)])


def _tips(e: Equations) -> ca.SX:
    return ca.horzcat(*e.energies.line_tips.values())


def _deflections(e: Equations) -> ca.SX:
    return ca.vertcat(*e.energies.deflections.values())


def _slopes(e: Equations) -> ca.SX:
    return ca.vertcat(*e.energies.slopes.values())


def _energies(e: Equations) -> Parts:
    E = e.energies
    return [e.q, e.v], [E.kinetic, E.strain, E.gravity]


def _dissipation(e: Equations) -> Parts:
    v = e.v
    return [e.q, v], [ca.dot(v, e.D @ v)]


def _momentum(e: Equations) -> Parts:
    """Momenta dT/dv and forces d(T - V)/dq - D v without the torques.

    With both the equations of motion are p' = force + B tau: Lagrange's first form, of which the
    midpoint rule is symplectic.
    """
    kinetic = e.energies.kinetic
    force = ca.gradient(kinetic, e.q) - e.c - e.k - e.D @ e.v
    return [e.q, e.v], [ca.gradient(kinetic, e.v), force]


_PARTS: dict[str, Callable[[Equations], Parts]] = {
    "mass_matrix": _of_q(lambda e: e.M),
    "bias": lambda e: ([e.q, e.v], [e.h]),
    "gravity": _of_q(lambda e: e.c),
    "elastic_force": _of_q(lambda e: e.k),
    "damping": _of_q(lambda e: e.D),
    "tangent_stiffness": _of_q(lambda e: e.tangent_stiffness),
    "elastic_stiffness": _of_q(lambda e: ca.jacobian(e.k, e.q)),
    "inverse_dynamics": lambda e: ([e.q, e.v, e.a], [e.inverse]),
    "forward_dynamics": lambda e: ([e.q, e.v, e.tau], [e.forward]),
    "derivatives": lambda e: ([e.q, e.v, e.tau], [*e.derivatives]),
    "derivatives_at_rest": lambda e: ([e.q], [*e.derivatives_at_rest]),
    "energies": _energies,
    "tip": _of_q(lambda e: e.energies.tip),
    "tip_jacobian": _of_q(lambda e: ca.jacobian(e.energies.tip, e.q)),
    "line_tips": _of_q(_tips),
    "line_tips_jacobian": _of_q(lambda e: ca.jacobian(ca.vec(_tips(e)), e.q)),
    "deflections": lambda e: ([e.q], [_deflections(e), _slopes(e)]),
    "deflections_jacobian": _of_q(lambda e: ca.jacobian(_deflections(e), e.q)),
    "terms": lambda e: ([e.q], [e.M, e.D, e.tangent_stiffness]),
    "dissipation": _dissipation,
    "momentum": _momentum,
}
_OUTPUTS: dict[str, tuple[str, ...]] = {
    "mass_matrix": ("M",),
    "bias": ("h",),
    "gravity": ("c",),
    "elastic_force": ("k",),
    "damping": ("D",),
    "tangent_stiffness": ("K",),
    "elastic_stiffness": ("K_elastic",),
    "inverse_dynamics": ("force",),
    "forward_dynamics": ("a",),
    "derivatives": ("a_by_q", "a_by_v", "a_by_tau"),
    "derivatives_at_rest": ("a_by_q", "a_by_v", "a_by_tau"),
    "energies": ("kinetic", "strain", "gravity"),
    "tip": ("tip",),
    "tip_jacobian": ("tip_by_q",),
    "line_tips": ("line_tips",),
    "line_tips_jacobian": ("line_tips_by_q",),
    "deflections": ("deflection", "slope"),
    "deflections_jacobian": ("deflection_by_q",),
    "terms": ("M", "D", "K"),
    "dissipation": ("dissipation",),
    "momentum": ("momentum", "force"),
}


def _input_names(e: Equations, inputs: Sequence[ca.SX]) -> list[str]:
    """Name inputs q, v, a and tau, and unknown ones by their position."""
    known = {"q": e.q, "v": e.v, "a": e.a, "tau": e.tau}
    names = (
        next((name for name, symbol in known.items() if symbol is argument), "")
        for argument in inputs
    )
    return [name or f"unknown{k}" for k, name in enumerate(names)]


_N_KEPT = 12  # equations kept in memory: those of a comparison on several meshes
_KEPT: dict[str, SharedEquations] = {}


@dataclass(frozen=True, kw_only=True)
class SharedEquations:
    """Equations of motion and their functions, both built on first use."""

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
    """Return the equations for a key `Plant.content`: cached ones, or those that `make` builds.

    The most recently used ones are kept.
    """
    shared = _KEPT.pop(content, None) or SharedEquations(make=make)
    _KEPT[content] = shared
    while len(_KEPT) > _N_KEPT:
        _KEPT.pop(next(iter(_KEPT)))
    return shared
