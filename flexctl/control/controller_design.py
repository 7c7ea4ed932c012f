"""Design of a controller: from plant and design file to its law, and with other numbers again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.controller import Controller
from flexctl.control.fed_reference import feed_reference
from flexctl.control.filters import filtered_law
from flexctl.control.fitted_law import closed_on_links, fit_law
from flexctl.control.friction_compensation import compensated_law
from flexctl.control.laws import LawParts
from flexctl.control.method_law import law_of_method
from flexctl.control.prescribed_motion import is_prescribed
from flexctl.control.readings import at_rotors
from flexctl.control.reference import ReferenceMotion, make_reference
from flexctl.control.saturation import torque_limits
from flexctl.control.shaped_reference import shape_reference
from flexctl.control.tustin_integrals import integrals_by_tustin, sums_by_tustin
from flexctl.errors import DesignError, InputError
from flexctl.model import (
    CHOSEN_GAINS,
    METHODS,
    Arm,
    BasisChoice,
    Design,
    check_design,
    load_design,
    load_model,
    reference_samples,
    refuse,
    sampled_design,
    set_aside,
    with_values,
)
from flexctl.parallel import on_one_thread
from flexctl.plant import Plant, assemble_plant, is_stiffness_error, linearise, nonzero_numbers


@on_one_thread
def design_controller(
    arm: Arm | str | Path,
    design: Design | str | Path,
    basis: BasisChoice | None = None,
    *,
    interpreted: bool = False,
    parameters: tuple[str, ...] = (),
) -> Controller:
    """Design the controller of a design file for an arm.

    Parameters
    ----------
    arm
        The arm as the designer knows it, its catalogue name or path.
    design
        Method, gains, weights, reference: a design, its catalogue name or path.
    basis
        Discretisation of the design plant; the design file's by default.
    interpreted
        Do not compile the design plant: see `Plant`.
    parameters
        What stays free beside the numbers of the arm that are not zero, such as
        ``stiffness_error``: relative errors of the stiffness K_hat that the law computes with. All
        gains, also those of the second loop and of an observer, are designed with the correct
        stiffness.

    Raises
    ------
    InputError
        When the design does not fit the arm.
    DesignError
        When no such controller exists: a mode cannot be stabilised, or the gains are unstable.

    Examples
    --------
    >>> import flexctl
    >>> flexctl.design_controller("single-link-hub", "hub-pd")
    Controller(hub-pd: joint-pd for single-link-hub, designed on 2 modes)
    """
    arm, design = load_model(arm), load_design(design)
    check_design(arm, design)
    free = dict.fromkeys((*nonzero_numbers(arm), *parameters))
    plant = assemble_plant(
        arm, basis or design.basis, interpreted=interpreted, parameters=tuple(free)
    )
    return design_on(plant, design)


def design_on(
    plant: Plant, design: Design, known: LawParts | None = None, *, rates_checked: bool = False
) -> Controller:
    """Design the controller of a design file on an existing plant.

    The plant keeps its equations of motion, so that varying the gains is cheap.

    Parameters
    ----------
    plant
        Design plant of the arm as the designer knows it; friction of its joints is left out, but
        for a prescribed motion, whose torques include it.
    design
        Method, gains, weights, reference; its `basis` is not used.
    known
        The law of the measured state, if it is known.
    rates_checked
        Whether the rates of the same motion have been compared with their limits.

    Raises
    ------
    InputError, DesignError
        As `design_controller`.
    """
    plant, arm = plant if is_prescribed(design) else plant.without_friction, plant.arm
    check_design(arm, design)
    motion = make_reference(design)
    parts = known or _law_parts(plant, design, motion)
    slopes = partial(_law_slopes, plant, design, motion, parts)
    reference = shape_reference(motion, design, plant.nominal, slopes)
    if reference.shaper and design.reference.rate is not None:
        end = np.array([design.loop.duration or reference.usual_run])
        check_design(arm, design, reference.sample(end)[0].ravel().tolist())
    if not rates_checked:
        _require_possible_rates(arm, design, reference)
    fit = fit_law(plant, design, reference, parts)
    inside = parts if fit.observer or fit.fitted else None
    parts, assumptions = fit.parts, fit.parts.assumptions
    if reference.shaper:
        assumptions += (reference.shaper.assumption,)
    assumptions += tuple(f"{design.reference.file}: {one}" for one in reference.contradictions)
    if not _names(design, arm):
        assumptions += (f"{design.name} was made for {design.model}, not for {arm.name}",)
    return Controller(
        design=design,
        plant=plant,
        reference=reference,
        recipe=parts.law,
        n_state=parts.n_state,
        torque_limit=np.full(plant.m, np.inf) if is_prescribed(design) else torque_limits(arm),
        feedback=parts.feedback,
        fast=parts.fast,
        observer=fit.observer,
        fitted=fit.fitted,
        external=parts.external,
        unlimited=fit.unlimited.law if fit.unlimited else None,
        expanded=fit.expanded.law if fit.expanded else None,
        inside=inside,
        assumptions=assumptions,
        own_states=parts.own_states,
    )


def controller_at(
    controller: Controller,
    of_plant: Mapping[str, ArrayLike],
    of_design: Mapping[str, ArrayLike] | None = None,
    *,
    rebuilt: bool = False,
) -> Controller:
    """Return the controller designed with other numbers of its plant and its design, by key.

    See `Plant.at`, and with `rebuilt` `Plant.rebuilt`. Gains that are chosen stay until weights, a
    decay or noise are given for their loop: then they follow from these, and weights and a decay
    that are not given are those they had before. Errors of the stiffness leave all gains as they
    are.

    Raises
    ------
    InputError, DesignError
        As `design_controller`.
    """
    of_design = of_design or {}
    plant = controller.plant.at(of_plant) if of_plant else controller.plant
    if not (of_design or rebuilt) and all(map(is_stiffness_error, of_plant)):
        return controller.on(plant)
    plant = plant.rebuilt() if rebuilt else plant
    _check_chosen(controller, of_design)
    columns = controller.fast.scales.names if controller.fast else ()
    own, weights = controller.design, controller.weights
    design = with_values(own, of_design, weights=weights, columns=columns)
    return replace(design_on(plant, design), weights=set_aside(own, design, weights))


def controller_at_period(controller: Controller, period: float) -> Controller:
    """Return the controller designed for another sampling period [s], not of an external law.

    Raises InputError, DesignError as `design_controller`.
    """
    law, loop = controller.inside, controller.design.loop
    alike = law and not law.own_states and not sums_by_tustin(law, loop)
    known = law if alike else None  # of a law that is the same at every period
    design = sampled_design(controller.design, period)
    return design_on(controller.plant, design, known, rates_checked=True)


def refused_at_period(controller: Controller, period: float) -> str | None:
    """Key of the design that its files refuse where it is sampled at a period [s]; None if none.

    Such as a filter's frequency above the Nyquist frequency: what is refused is what
    `design_controller` refuses.
    """
    if controller.external:  # it does not follow from its design, and a gain has every period
        return None
    try:
        controller_at_period(controller, period)
    except (InputError, DesignError) as error:
        return str(error).removeprefix(f"{controller.design.label}: ").partition(":")[0]
    return None


def _law_parts(plant: Plant, design: Design, motion: ReferenceMotion) -> LawParts:
    """Build the law of the method, with friction compensation, fed rates and filters around it."""
    parts = integrals_by_tustin(law_of_method(plant, design, motion), plant, design.loop)
    if design.friction_compensation:
        parts = compensated_law(parts, plant, design.friction_compensation)
    parts = feed_reference(plant, parts, design.reference.feeds)
    return filtered_law(plant, parts, design, motion) if design.filters else parts


def _law_slopes(
    plant: Plant, design: Design, motion: ReferenceMotion, parts: LawParts
) -> tuple[Array, ...]:
    """Slopes of the law of the gross motion where the reference ends, without observer.

    See `Controller.law_jacobian`. They are those of the continuous law: rates of own states of a
    sampled one are (z+ - z)/T.
    """
    design, parts = _without_sampling(plant, design, motion, parts)
    controller = Controller(
        design=design,
        plant=plant,
        reference=motion,
        recipe=parts.law,
        n_state=parts.n_state,
        torque_limit=torque_limits(plant.arm),
        feedback=parts.feedback,
        fast=parts.fast,
        own_states=parts.own_states,
        assumptions=(),
    )
    q0, still = linearise(plant.nominal, plant.straight(motion.final)).q0, np.zeros(plant.m)
    given = 0.0, np.zeros(parts.n_state), motion.final, still, still, q0, np.zeros(plant.n)
    by_x, by_z, z_by_x, z_by_z = map(np.array, controller.evaluate("law_jacobian", *given))
    for first, joints in zip((0, plant.n), closed_on_links(plant, design, parts), strict=True):
        for rotor, joint in at_rotors(plant, joints):
            for slopes in (by_x, z_by_x):
                slopes[:, first + joint] += slopes[:, first + rotor]
                slopes[:, first + rotor] = 0.0
    return by_x, by_z, z_by_x, z_by_z


def _without_sampling(
    plant: Plant, design: Design, motion: ReferenceMotion, parts: LawParts
) -> tuple[Design, LawParts]:
    """Return the design and its law as they are in continuous time, where a shaper needs these."""
    loop, unknown = design.loop, parts.external and "comes from outside"
    sampled = loop.sample_time and (parts.own_states or sums_by_tustin(parts, loop))
    if sampled and design.method not in METHODS and law_of_method(plant, design, motion).own_states:
        unknown = f"of method {design.method} has own states, which are known at samples only"
    if unknown:
        expected = f"numbers or modes of the arm, as the law {unknown}"
        got = design.reference.shaper and design.reference.shaper.frequency
        raise refuse(design.label, "reference.shaper.frequency", expected=expected, got=got)
    if not sampled:
        return design, parts
    loop = loop.model_copy(update={"sample_time": 0.0})
    continuous = design.model_copy(update={"loop": loop})
    return continuous, _law_parts(plant, continuous, motion)


def _require_possible_rates(arm: Arm, design: Design, reference: ReferenceMotion) -> None:
    """Refuse a reference that exceeds the rate limit of a joint."""
    if all(link.limits.rate is None for link in arm.links):
        return
    fastest = np.abs(reference.sample(_watched(design, reference))[1]).max(axis=1)
    for j, (link, rate) in enumerate(zip(arm.links, fastest, strict=True)):
        limit = link.limits.rate
        if limit is not None and rate > limit * (1 + 1e-9):
            raise InputError(
                f"{design.label}: reference.duration: expected a motion of at most {limit:g} per s "
                f"at joint{j + 1} (limits.rate of {link.name} of {arm.name}), got {rate:.4g}"
            )


def _watched(design: Design, reference: ReferenceMotion) -> Array:
    """Return times (N,) [s] that miss no large rate, also within short parts of the motion."""
    ends = np.unique([0.0, *reference.breaks, reference.duration])
    times = [np.linspace(0.0, reference.duration, 501)]
    times += [np.linspace(a, b, 101) for a, b in pairwise(ends.tolist())]
    if design.reference_file is not None:  # a spline through samples has its rates between them
        t = reference_samples(design).t
        since = np.concatenate([t, (t[1:] + t[:-1]) / 2]) - t[0]
        shifts = reference.shaper.times if reference.shaper else np.zeros(1)
        times.append(np.add.outer(shifts, since).ravel())
    return np.concatenate(times)


def _names(design: Design, arm: Arm) -> bool:
    """Whether a design's `model` is this arm, by name or by path."""
    known = {arm.name, arm.path.stem if arm.path else arm.name}
    path = Path(design.model)
    if design.model in known or path.suffix.lower() != ".toml":
        return design.model in known
    beside = design.path.parent / path if design.path else path
    there = [file.resolve() for file in (path, beside) if os.path.isfile(file)]
    return arm.path.resolve() in there if there and arm.path else path.stem in known


def _check_chosen(controller: Controller, values: Mapping[str, ArrayLike]) -> None:
    """Refuse chosen gains of another size, or of a loop that there is not."""
    m, sizes = controller.plant.m, dict[str, tuple[int, ...]]()
    if controller.feedback:
        sizes["second_loop.gain"] = controller.feedback.gain.shape
    if controller.observer:
        sizes["observer.gain"] = controller.observer.gain.shape
    if fast := controller.fast:
        sizes |= dict.fromkeys(("fast_loop.Kp", "fast_loop.Kv"), (m, len(fast.scales.names)))
    for key in [key for key in values if key in CHOSEN_GAINS]:
        if key not in sizes:
            loop = "an observer" if key == "observer.gain" else f"a {key.split('_')[0]} loop"
            raise InputError(f"{key}: expected a controller with {loop}, got none")
        checks.shape(key, values[key], sizes[key])
