"""The functions that a run needs of a closed loop, each compiled where a compiler is found."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

import casadi as ca

from flexctl.loop.closed_loop import ClosedLoop
from flexctl.plant import Plant, compile_functions

RUN = ("reference", "law", "dissipation", "deflections")  # what every run asks for


def momentum(plant: Plant) -> ca.Function:
    """CasADi function (q, v) -> momenta dT/dv and forces d(T - V)/dq - D v but the torques'.

    With both the equations of motion are p' = force + B tau: Lagrange's first form, of which the
    midpoint rule is symplectic.
    """
    q, v = ca.SX.sym("q", plant.n), ca.SX.sym("v", plant.n)
    kinetic, strain, gravity = plant.casadi_functions["energies"](q, v)
    p = ca.gradient(kinetic, v)
    force = ca.gradient(kinetic - strain - gravity, q)
    force -= plant.casadi_functions["damping"](q) @ v
    dense = [ca.densify(p), ca.densify(force)]
    return ca.Function("momentum", [q, v], dense, {"cse": True})


_OF_LOOP: Mapping[str, Callable[[ClosedLoop], ca.Function]] = {
    "reference": lambda loop: loop.reference,
    "law": lambda loop: loop.law,
    "law_jacobian": lambda loop: loop.law_jacobian,
}


def build(loop: ClosedLoop, name: str) -> ca.Function:
    """Make a function of a run, symbolically: for the compiler, or for the virtual machine."""
    if name in _OF_LOOP:
        return _OF_LOOP[name](loop)
    if name == "momentum":
        return momentum(loop.truth)
    return loop.truth.casadi_functions[name]


def library(loop: ClosedLoop, name: str) -> Path | None:
    """Shared library of one function, made or from the cache; None without a compiler."""
    content = loop.content if name in _OF_LOOP else loop.truth.content
    return compile_functions(f"run {name} {content}", lambda: [build(loop, name)])


def load(loop: ClosedLoop, name: str) -> ca.Function:
    """Return a function of a run to call from Python, compiled where a compiler is found."""
    path = library(loop, name)
    return build(loop, name) if path is None else external(name, path)


@functools.cache
def external(name: str, path: Path) -> ca.Function:
    """Return a function of a shared library; opened once."""
    return ca.external(name, str(path))
