"""The functions of a plant, by name, as CasADi functions of its equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import casadi as ca

from flexctl.plant.compilation import Evaluator
from flexctl.plant.equations import Equations

LIBRARIES = (
    (
        "mass_matrix",
        "inverse_dynamics",
        "energies",
        "gravity",
        "elastic_force",
        "tip",
        "line_tips",
        "deflections",
    ),
    (
        "damping",
        "tangent_stiffness",
        "elastic_stiffness",
        "tip_jacobian",
        "line_tips_jacobian",
        "deflections_jacobian",
    ),
    ("bias",),
    ("forward_dynamics",),
    ("derivatives", "derivatives_at_rest"),
)
"""Functions with a numeric method, by the compiled library that they share."""

MATRICES = {
    "derivatives",
    "derivatives_at_rest",
    "elastic_stiffness",
    "mass_matrix",
    "damping",
    "tangent_stiffness",
    "line_tips",
    "tip_jacobian",
    "line_tips_jacobian",
    "deflections_jacobian",
}

_N_KEPT = 12  # equations kept in memory: those of a comparison on several meshes
_KEPT: dict[str, PlantFunctions] = {}


class PlantFunctions(Mapping[str, ca.Function]):
    """Equations of motion and their CasADi functions with dense results, built on first use.

    Inputs and outputs are named as in `_TABLE`. Free numbers, if any, are the last input of every
    function. `evaluators` has what calls them, by the way in which they are evaluated and the cache
    that they come from.
    """

    def __init__(self, make: Callable[[], Equations]) -> None:
        """Keep the builder of the equations."""
        self._make = make
        self._made: dict[str, ca.Function] = {}
        self.evaluators: dict[str, Mapping[str, Evaluator]] = {}

    @cached_property
    def equations(self) -> Equations:
        """The terms of the equations of motion."""
        return self._make()

    def __getitem__(self, name: str) -> ca.Function:
        if name not in self._made:
            words, terms = _TABLE[name]
            e, names = self.equations, words.split()
            inputs = [*(getattr(e, word) for word in names), *e.free_input]
            names += ["numbers"] * len(e.free_input)
            dense = [ca.densify(term(e)) for term in terms.values()]
            self._made[name] = ca.Function(name, inputs, dense, names, list(terms), {"cse": True})
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_TABLE)

    def __len__(self) -> int:
        return len(_TABLE)


def share_functions(content: str, make: Callable[[], Equations]) -> PlantFunctions:
    """Return the functions for a key `Plant.content`: cached ones, or of what `make` builds.

    The most recently used ones are kept.
    """
    shared = _KEPT.pop(content, None) or PlantFunctions(make)
    _KEPT[content] = shared
    while len(_KEPT) > _N_KEPT:
        _KEPT.pop(next(iter(_KEPT)))
    return shared


def _tips(e: Equations) -> ca.SX:
    return ca.horzcat(*e.energies.line_tips.values())


def _deflections(e: Equations) -> ca.SX:
    return ca.vertcat(*e.energies.deflections.values())


def _momentum(e: Equations) -> ca.SX:
    """Return the momenta p = dT/dv; the equations of motion are p' = force with `_force`.

    This is Lagrange's first form, of which the midpoint rule is symplectic.
    """
    return ca.gradient(e.energies.kinetic, e.v)


def _force(e: Equations) -> ca.SX:
    """Return the forces d(T - V)/dq - D v - f + B u."""
    return ca.gradient(e.energies.kinetic, e.q) - e.c - e.k - e.D @ e.v - e.f + e.force


def _damping_slope(e: Equations) -> ca.SX:
    """Return d(D v + f)/dv, which at rest is steep where there is dry friction."""
    return e.D + e.friction.slope


def _taken(e: Equations) -> ca.SX:
    """Return the power that dampers and friction of the arm itself take."""
    return ca.dot(e.v, e.energies.D @ e.v + e.friction.force)


_TABLE: dict[str, tuple[str, dict[str, Callable[[Equations], ca.SX]]]] = {
    "mass_matrix": ("q", {"M": lambda e: e.M}),
    "bias": ("q v", {"h": lambda e: e.h}),
    "gravity": ("q", {"c": lambda e: e.c}),
    "elastic_force": ("q", {"k": lambda e: e.k}),
    "damping": ("q", {"D": lambda e: e.D}),
    "tangent_stiffness": ("q", {"K": lambda e: e.tangent_stiffness}),
    "elastic_stiffness": ("q", {"K_elastic": lambda e: ca.jacobian(e.k, e.q)}),
    "inverse_dynamics": ("q v a", {"force": lambda e: e.inverse}),
    "forward_dynamics": ("q v tau", {"a": lambda e: e.forward}),
    "derivatives": (
        "q v tau",
        {
            "a_by_q": lambda e: e.derivatives[0],
            "a_by_v": lambda e: e.derivatives[1],
            "a_by_tau": lambda e: e.derivatives[2],
        },
    ),
    "derivatives_at_rest": (
        "q",
        {
            "a_by_q": lambda e: e.derivatives_at_rest[0],
            "a_by_v": lambda e: e.derivatives_at_rest[1],
            "a_by_tau": lambda e: e.derivatives_at_rest[2],
        },
    ),
    "energies": (
        "q v",
        {
            "kinetic": lambda e: e.energies.kinetic,
            "strain": lambda e: e.energies.strain,
            "gravity": lambda e: e.energies.gravity,
        },
    ),
    "tip": ("q", {"tip": lambda e: e.energies.tip}),
    "tip_jacobian": ("q", {"tip_by_q": lambda e: ca.jacobian(e.energies.tip, e.q)}),
    "line_tips": ("q", {"line_tips": _tips}),
    "line_tips_jacobian": ("q", {"line_tips_by_q": lambda e: ca.jacobian(ca.vec(_tips(e)), e.q)}),
    "deflections": (
        "q",
        {"deflection": _deflections, "slope": lambda e: ca.vertcat(*e.energies.slopes.values())},
    ),
    "deflections_jacobian": ("q", {"deflection_by_q": lambda e: ca.jacobian(_deflections(e), e.q)}),
    "terms": (
        "q v",
        {"M": lambda e: e.M, "D": _damping_slope, "K": lambda e: e.tangent_stiffness},
    ),
    "power": (
        "q v tau",
        {"supplied": lambda e: ca.dot(e.torque, e.rates), "dissipated": _taken},
    ),
    "bristled_dynamics": ("q v tau push", {"a": lambda e: e.bristled}),
    "bristles": (
        "v before c_w",
        {
            "w": lambda e: e.bristles.w,
            "w_rate": lambda e: e.bristles.w_rate,
            "force": lambda e: e.bristles.force,
            "slope": lambda e: e.bristles.slope,
            "power": lambda e: e.bristles.power,
            "energy": lambda e: e.bristles.energy,
        },
    ),
    "torque": ("v tau", {"torque": lambda e: e.torque}),
    "balance": ("q v a tau", {"residual": lambda e: e.inverse - e.force}),
    "momentum": ("q v tau", {"momentum": _momentum, "force": _force}),
}
