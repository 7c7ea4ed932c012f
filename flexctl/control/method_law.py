"""Laws of methods: those of installed packages are checked before anything relies on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca

from flexctl.control.laws import ExternalLaw, LawParts, check_law, graph_symbols
from flexctl.control.measured_signals import measurable
from flexctl.control.reference import ReferenceMotion
from flexctl.errors import DesignError, FlexctlError, InputError
from flexctl.model import (
    METHODS,
    Design,
    MissingOptionError,
    find_method,
    in_one_line,
    load_method,
    nearest,
    shown,
)
from flexctl.plant import Plant

MakeLaw = Callable[[Plant, Design, ReferenceMotion], LawParts]  # function of a method


def law_of_method(plant: Plant, design: Design, reference: ReferenceMotion) -> LawParts:
    """Make the law of a design by its method.

    Raises
    ------
    InputError
        When the method of an installed package cannot be loaded, fails, or gives no law of the
        arm's joints and measurements; the message names the file, the method and its place.
    """
    try:
        make_law: MakeLaw = load_method(design.method)
    except InputError as error:
        raise InputError(f"{design.label}: {error}") from error
    if design.method in METHODS:
        return make_law(plant, design, reference)
    method = f"{design.label}: method {design.method} ({find_method(design.method)})"
    try:
        parts = _checked(plant, design, make_law(plant, design, reference))
    except MissingOptionError as error:
        expected = f"a value, as method {design.method} reads it"
        raise InputError(
            f"{design.label}: options.{error.args[0]}: expected {expected}, got nothing"
        ) from error
    except FlexctlError as error:
        kind = DesignError if isinstance(error, DesignError) else InputError
        raise kind(f"{method}: {error}") from error
    except Exception as error:  # code of the user's own: it may raise anything
        raise InputError(f"{method}: expected a law, got {in_one_line(error)}") from error
    return parts


def _checked(plant: Plant, design: Design, parts: Any) -> LawParts:
    """Refuse anything but a law of the plant's joints and measurements; see what it depends on."""
    if not isinstance(parts, LawParts):
        raise InputError(f"expected LawParts, got {shown(parts)}")
    if not isinstance(parts.law, ca.Function):
        raise InputError(f"law: expected a CasADi function, got {shown(parts.law)}")
    external, m = parts.external, plant.m
    if external is not None and not isinstance(external, ExternalLaw):
        raise InputError(f"external: expected an ExternalLaw or None, got {shown(external)}")
    if type(parts.n_state) is not int or parts.n_state < 0:
        raise InputError(f"n_state: expected a whole number, 0 or more, got {parts.n_state!r}")
    if external is None and parts.n_state - len(parts.own_states) not in (0, m):
        expected = f"0 or {m} (integrals of the joint errors), as it is no ExternalLaw"
        expected += f", and {len(parts.own_states)} own states" if parts.own_states else ""
        raise InputError(f"n_state: expected {expected}, got {shown(parts.n_state)}")
    if external is not None:
        known = measurable(plant, design.loop.strain_gauges)
        for name in external.measures:
            if name not in known:
                expected = f"signals of {plant.arm.name} ({nearest(name, known)})"
                raise InputError(f"measures: expected {expected}, got {name}")
    if not isinstance(parts.assumptions, tuple | list) or not all(
        isinstance(one, str) for one in parts.assumptions
    ):
        raise InputError(f"assumptions: expected texts, got {shown(parts.assumptions)}")
    measured = len(external.measures if external else plant.coordinates)
    try:
        check_law(plant, parts.law, n_state=parts.n_state, measured=measured)
    except DesignError as error:
        raise InputError(str(error)) from error
    return _characterised(replace(parts, assumptions=tuple(parts.assumptions)))


def _characterised(parts: LawParts) -> LawParts:
    """Say of an external law whether it is timed or nonlinear; of others refuse an unused s."""
    assert isinstance(parts.law, ca.Function)
    timed = any(parts.law.jac_sparsity(row, 0).nnz() for row in (0, 1))
    external = parts.external
    if external is None:
        if timed and parts.feedback is None:
            raise InputError(
                "law: expected no dependence on s, the weight of the second loop, as there is none"
            )
        return parts
    known = replace(
        external,
        timed=external.timed or timed,
        nonlinear=external.nonlinear or _is_nonlinear(parts.law),
    )
    return replace(parts, external=known)


def _is_nonlinear(law: ca.Function) -> bool:
    """Whether slopes of a law by its state and measurements depend on these."""
    inputs = graph_symbols(law)
    states = [inputs[k] for k in (1, 5, 6)]
    slopes = [ca.jacobian(result, x) for result in law.call(inputs) for x in states]
    return any(ca.depends_on(J, x) for J in slopes for x in states)
