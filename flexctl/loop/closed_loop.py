"""A controller closed around a truth plant, and the measurement between them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.control import (
    Controller,
    as_driven,
    controller_at,
    design_on,
    holding_limits,
    integral_rates,
    is_prescribed,
    law_inputs,
    law_slopes,
    limit_torque,
    round_to,
    share_law,
    torque_limits,
)
from flexctl.errors import InputError
from flexctl.loop.events import JUMP
from flexctl.loop.friction import friction_assumptions
from flexctl.loop.measurement import (
    Measurement,
    make_measurement,
    measure_instruments,
    measure_signals,
)
from flexctl.loop.setup import default_truth
from flexctl.model import (
    Arm,
    BasisChoice,
    command_units,
    is_of_design,
    load_model,
    pick_basis,
)
from flexctl.plant import (
    STIFFNESS_ERROR,
    Plant,
    ShapeChange,
    assemble_plant,
    followed_range,
    is_stiffness_error,
    kept_shape_error,
    known_numbers,
    missing_terms,
    nonzero_numbers,
    why_out_of_range,
)
from flexctl.records import Summary

ShapesChoice = Literal["kept", "rebuilt"]
_OF_TRUTH = "truth."  # keys of the true arm alone


@dataclass(frozen=True, kw_only=True, repr=False)
class ClosedLoop(Summary):
    """A controller, the truth plant it is judged on, and the measurement between them.

    Attributes
    ----------
    controller
        Law, reference and torque limits.
    truth
        Plant of the arm as it is, with n coordinates [rad or m] and m torques [N m or N], or
        commands of motors [A or V].
    measurement
        What the law measures of the truth's q, v (n,).

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
    >>> loop.duration
    4.0
    """

    controller: Controller
    truth: Plant
    measurement: Measurement

    def __repr__(self) -> str:
        name, truth = self.controller.design.name, self.truth
        return f"ClosedLoop({name} on {truth.arm.name}, {truth.basis.label})"

    def _facts(self) -> dict[str, Any]:
        return {
            **self.controller._facts(),
            "model": self.truth.arm.name,
            "truth": self.truth.basis.label,
            "torque_limit": self.torque_limit,
        }

    def at(self, values: Mapping[str, ArrayLike], shapes: ShapesChoice = "kept") -> ClosedLoop:
        """Return the loop with other numbers of arm and design, by key; the rest stays as it is.

        Gains of Riccati equations, observers and references follow from them, but no equation is
        derived again and nothing is compiled: functions have these numbers as inputs. Modes keep
        the shapes of this loop, and `shape_error` says how much that matters, unless they are
        "rebuilt": then the loop is exactly that of `close_loop` with the changed arm and design,
        derived and compiled anew. Shapes of elements are always the same.

        Parameters
        ----------
        values
            Numbers of the arm as in its file, ``payload.mass`` or ``link1.EI.y``, that are not
            zero: of the design's arm and of the true one; ``truth.payload.mass`` of the true arm
            alone. Numbers of the design: ``gains.Gp``, ``second_loop.weights.effort``,
            ``reference.duration``. Matrices in place of solved ones: ``second_loop.gain`` (m, 2n),
            with a weight of integrals (m, 2n + m), ``observer.gain`` (2n, p), ``fast_loop.Kp`` with
            ``fast_loop.Kv`` (m, n_z); they are as in `gains_used` and stay, whatever else changes,
            until a weight (or noise) of their loop is given again: then they are solved from it and
            the weights of before. Errors of the stiffness that the law computes with, where they
            are free: ``stiffness_error[link1.y.1]``.
        shapes
            "kept" or "rebuilt"; also of values given before.

        Raises
        ------
        InputError
            When a key is no number of these, or a value is not allowed.
        ComputationError
            When rebuilt modes that follow a length cannot be proven to be accurate.
        DesignError
            When there is no such controller.

        Examples
        --------
        >>> import flexctl
        >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
        >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=2)
        >>> stiffer = loop.at({"link1.EI.y": 20.0, "gains.Gp": 30.0})
        >>> stiffer.truth.arm.links[0].EI["y"]
        20.0
        """
        checks.kind("values", values, Mapping)
        for key in values:
            checks.kind("values", key, str, hint="keys of the files")
        if shapes not in get_args(ShapesChoice):
            expected = " or ".join(map(repr, get_args(ShapesChoice)))
            raise InputError(f"shapes: expected {expected}, got {shapes!r}")
        of_truth = {key: x for key, x in values.items() if key.startswith(_OF_TRUTH)}
        of_design, of_plant = dict[str, ArrayLike](), dict[str, ArrayLike]()
        for key, x in values.items():
            if key not in of_truth:
                (of_design if is_of_design(key) else of_plant)[key] = x
        own = {key: x for key, x in of_plant.items() if not is_stiffness_error(key)}
        own |= {key.removeprefix(_OF_TRUTH): x for key, x in of_truth.items()}
        truth = self.truth.at(own) if own else self.truth
        rebuilt = shapes == "rebuilt"
        changed = bool(of_plant or of_design or (rebuilt and self.controller.plant.shaped_for))
        controller = self.controller
        if changed:
            controller = controller_at(controller, of_plant, of_design, rebuilt=rebuilt)
        if rebuilt or is_prescribed(controller.design):
            return close_around(controller, truth.rebuilt() if rebuilt else truth)
        if controller.design.loop.strain_gauges != self.controller.design.loop.strain_gauges:
            return close_around(controller, truth)  # which are others on the arm
        loop = replace(self, controller=controller, truth=truth)
        fitted, known = controller.fitted, self.measurement
        if fitted and (truth is not self.truth or fitted != known.fitted):
            # it has numbers of its own, and reads torques by those of springs
            measured = measure_instruments(fitted, controller.plant, truth, known.state)
            return replace(loop, measurement=measured)
        return loop

    @cached_property
    def under_errors(self) -> Callable[..., ClosedLoop]:
        """The loop with errors [-] of its law's stiffness, one for all parts or one for each.

        They must be free. The last 8 are kept: margins at all poses ask for the same few.
        """
        return lru_cache(maxsize=8)(lambda *errors: self.at({STIFFNESS_ERROR: errors}))

    @cached_property
    def shape_error(self) -> ShapeChange | None:
        """Largest change of a frequency of a clamped line that kept shapes amount to; see `at`.

        Of the truth plant and of the design plant; None where their shapes are those of their arms.
        """
        plants = (self.truth, self.controller.plant)
        errors = [error for plant in plants if (error := kept_shape_error(plant))]
        return max(errors, key=lambda error: abs(error.change), default=None)

    @property
    def duration(self) -> float:
        """Length of a run [s]."""
        return self.controller.duration

    @property
    def torque_limit(self) -> Array:
        """Largest torques (m,) [N m or N], or commands, that both law and true arm allow."""
        return np.minimum(self.controller.torque_limit, torque_limits(self.truth.arm))

    @property
    def largest_torque(self) -> Array:
        """Torques (m,) that act at these limits: in steps what the limit is rounded to, within it.

        Halves are rounded up, so that the torques of one sign may be larger: the smaller counts.
        """
        limit, step = self.torque_limit, self.controller.design.loop.torque_resolution
        if not step:
            return limit
        held = np.minimum(limit, step * np.ceil(limit / step - 0.5))
        return np.where(held > 0, held, limit)

    @property
    def prescribed(self) -> bool:
        """Whether the driven coordinates follow the reference exactly: a constraint, no loop."""
        return is_prescribed(self.controller.design)

    @property
    def holding_limit(self) -> Array:
        """Largest torques (m,) [N m or N] at rest, by limits of torque, current and voltage."""
        by_law = self.torque_limit * self.truth.torque_per_command
        return np.minimum(by_law, holding_limits(self.truth.arm))

    @cached_property
    def valid_range(self) -> tuple[Array, Array]:
        """Lowest and highest coordinates (n,) of the truth plant for which the loop is valid.

        A law whose modes follow a length is limited to their range.
        """
        (lowest, highest), rest = self.truth.valid_range, self.truth.n - self.truth.m
        first, last = followed_range(self.controller.plant.bodies)
        return (
            np.maximum(lowest, np.append(first, np.full(rest, -np.inf))),
            np.minimum(highest, np.append(last, np.full(rest, np.inf))),
        )

    def why_out_of_range(self, index: int) -> str:
        """Explain that a coordinate left `valid_range`."""
        plants = (self.truth, self.controller.plant)
        follows = index < self.truth.m and any(plant.bodies[index].mixes for plant in plants)
        return why_out_of_range(self.truth, index, follows=follows)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of all results of this loop, in sentences."""
        loop = self.controller
        sampling = (
            f"the law is sampled every {loop.sample_time:g} s and held, delayed by {loop.delay:g} s"
            if loop.sample_time
            else "the law is continuous and without delay"
        )
        second, fast = loop.design.second_loop, loop.design.fast_loop
        solved = (second and (second.weights or second.decay)) or (fast and fast.weights)
        if loop.sample_time and solved:
            sampling += "; gains that follow from weights or a decay are those of continuous time"
        if step := loop.design.loop.torque_resolution:
            units = " or ".join(dict.fromkeys(command_units(self.truth.arm)))
            sampling += f"; torques are rounded to steps of {step:.3g} {units}, in runs only"
        if loop.fitted and loop.fitted.noisy:
            sampling += f"; the noise of runs is drawn with seed {loop.design.loop.seed}"
        blind = loop.design.open_loop or (loop.collocated and loop.plant.n > loop.plant.m)
        measured = () if blind and not loop.fitted else (self.measurement.assumption,)
        if loop.observer and not loop.fitted:
            measured = (self.measurement.gauge_assumption,) if loop.observer.reads_gauges else ()
        missing = missing_terms(self.truth.arm, loop.reference.final)
        where = (f"at the reference's end, {sentence}" for sentence in missing)
        shapes = (_kept_shapes(self.shape_error),) if self.shape_error else ()
        when = () if self.prescribed else (sampling,)
        friction = friction_assumptions(self.truth, loop.design, loop.reference.final)
        return (*loop.assumptions, *measured, *when, *friction, *where, *shapes)

    @cached_property
    def reference(self) -> ca.Function:
        """CasADi function (t, phase, numbers) -> (s, q_d, v_d, a_d).

        The phase is that of `Event`: below 1 in the gross motion, where it counts the jumps of a_d,
        1 while the second loop fades in, 2 afterwards; s goes from 0 to 1 along the smooth step 3
        x^2 - 2 x^3 of the blending time. For a reference of torques a_d is the torque. For a law
        that depends on time explicitly s is the time.
        """
        t, phase = ca.MX.sym("t"), ca.MX.sym("phase")
        motion = self.controller.reference
        steps = np.zeros((0, 0)) if motion.steps is None else motion.steps
        switch, own = ca.MX.sym("switch", 2), ca.MX.sym("motion", len(motion.numbers))
        stepped = ca.MX.sym("steps", *steps.shape)
        s = phase > 1.5
        if self.controller.blend:
            x = (t - switch[0]) / switch[1]
            s = ca.fmin(ca.fmax(x, 0), 1) ** 2 * (3 - 2 * ca.fmin(ca.fmax(x, 0), 1))
        if self.controller.external and self.controller.external.timed:
            s = t
        results = motion.function.call([t, *([own] if own.numel() else [])])
        outputs = [ca.densify(s), *motion.after(phase / JUMP, results, stepped)]
        parts = [switch, own, ca.vec(stepped)]
        numbers = ca.MX.sym("numbers", sum(part.numel() for part in parts))
        ends = np.cumsum([0, *(part.numel() for part in parts)]).tolist()
        split = [
            ca.reshape(numbers[a:b], part.shape)
            for a, b, part in zip(ends[:-1], ends[1:], [switch, own, stepped], strict=True)
        ]
        outputs = ca.substitute(outputs, [switch, own, stepped], split)
        names = ["t", "phase", "numbers"], ["s", "q_d", "v_d", "a_d"]
        return ca.Function("reference", [t, phase, numbers], outputs, *names)

    @cached_property
    def law(self) -> ca.Function:
        """CasADi function (s, z, q_d, v_d, a_d, q, v, numbers) of the truth -> (tau, z_rate).

        Torques are limited, and rounded to the nearest of their steps; integration stops for joints
        whose torque is at its limit. The numbers are those of `law_numbers`.
        """
        inputs = self._law_inputs(written_out=False)
        tau, z_rate = self._limited(inputs)
        names = [*law_inputs(), "numbers"], ["tau", "z_rate"]
        return ca.Function("law", inputs, [tau, z_rate], *names, {"cse": True})

    @cached_property
    def law_jacobian(self) -> ca.Function:
        """Inputs of `law` -> dF/dq, dF/dv, (m, n) each, of the forces F that its commands give.

        Of a continuous law with states also dtau/dz, dF/dz (m, n_z), dz'/dq, dz'/dv (n_z, n) and
        dz'/dz (n_z, n_z). For Newton's method in a run. The last input is `force_numbers`.
        """
        inputs, own = self._law_inputs(), len(self.law_numbers)
        inputs[-1] = ca.SX.sym("numbers", len(self.force_numbers))
        tau, z_rate = self._limited([*inputs[:-1], inputs[-1][:own]])
        z, q, v = inputs[1], inputs[5], inputs[6]
        e = self.truth.equations
        force = e.motors.force(tau, v[list(self.truth.drives)])
        if inputs[-1].numel() > own:
            force = ca.substitute(force, e.free, inputs[-1][own:])
        parts = {"force_by_q": (force, q), "force_by_v": (force, v)}
        if self.controller.n_state and self.controller.sample_time is None:
            parts |= {"tau_by_z": (tau, z), "force_by_z": (force, z)}
            parts |= {"rate_by_q": (z_rate, q), "rate_by_v": (z_rate, v), "rate_by_z": (z_rate, z)}
        outputs = [ca.densify(ca.jacobian(part, by)) for part, by in parts.values()]
        names = [*law_inputs(), "numbers"], list(parts)
        return ca.Function("law_jacobian", inputs, outputs, *names, {"cse": True})

    @cached_property
    def law_derivatives(self) -> ca.Function:
        """Inputs of `law` -> derivatives of tau by x = [q; v] and z, and of z' by the same.

        Of the sizes (m, 2n), (m, n_z), (n_z, 2n), (n_z, n_z).
        """

        def make() -> ca.Function:
            inputs, n = self._law_inputs(written_out=False), 2 * self.truth.n
            J, m = law_slopes(self.law, (5, 6, 1))(*inputs), self.truth.m
            columns = slice(n), slice(n, None)
            blocks = [part[:, of] for part in (J[:m, :], J[m:, :]) for of in columns]
            results = ["tau_by_x", "tau_by_z", "z_rate_by_x", "z_rate_by_z"]
            names = [*law_inputs(), "numbers"], results
            return ca.Function("law_derivatives", inputs, blocks, *names)

        return share_law(f"derivatives in the loop {self.law_key}", make)

    @cached_property
    def law_numbers(self) -> Array:
        """Numbers (k,) of the law: the controller's, finite torque limits, tracking time, step."""
        limit, step = self.torque_limit, self.controller.design.loop.torque_resolution
        finite, last = limit[np.isfinite(limit)], np.array([step] if step else [])
        return np.concatenate([self.controller.numbers, finite, self._tracking, last])

    @property
    def _tracking(self) -> Array:
        """Tracking time [s] (1,) of integrals that the loop has to stop; empty without."""
        knows_limits = self.controller.observer is not None  # its own integrals know them already
        if knows_limits or not self.controller.n_integral or np.isinf(self.torque_limit).all():
            return np.zeros(0)
        return self.controller.tracking

    @cached_property
    def force_numbers(self) -> Array:
        """Numbers (k,) of the forces: those of the law, and with motors those of the true arm."""
        if all(link.motor is None for link in self.truth.arm.links):
            return self.law_numbers
        return np.concatenate([self.law_numbers, self.truth.numbers])

    @cached_property
    def reference_numbers(self) -> Array:
        """Numbers (k,) of the reference: its duration, the fade-in, and those of the motion."""
        motion = self.controller.reference
        steps = np.zeros(0) if motion.steps is None else motion.steps.ravel(order="F")
        return np.concatenate([[motion.duration, self.controller.blend], motion.numbers, steps])

    @cached_property
    def law_key(self) -> str:
        """Everything that determines the function `law`, as text: the key of the compile cache."""
        limited = np.isfinite(self.torque_limit).tolist()
        steps = " in steps" if self.controller.design.loop.torque_resolution else ""
        winds = f"{limited} {len(self.law_numbers)}{steps}"  # whether there is a tracking time
        return f"{self.controller.key} seen {_digest(self.measurement.function)} {winds}"

    @cached_property
    def reference_key(self) -> str:
        """Everything that determines the function `reference`, as text."""
        motion, external = self.controller.reference, self.controller.external
        steps = () if motion.steps is None else motion.steps.shape
        how = (bool(self.controller.blend), bool(external and external.timed), steps)
        return f"{_digest(motion.function)} {how}"

    def agreeing_state(self, q: Array, v: Array, *desired: Array, weight: float = 0.0) -> Array:
        """State of the law (n_z,) with the measurement of the truth's q, v (n,) as estimate.

        See `Controller.agreeing_state` for the others.
        """
        seen, state = self.measurement.read(q, v), self.measurement.state
        estimate = state.read(q, v) if state else None
        return self.controller.agreeing_state(*seen, *desired, weight=weight, estimate=estimate)

    def initial_law_state(self, q: Array, v: Array, held: Array | None = None) -> Array:
        """State of the law (n_z,) at the start of a run with the truth at q, v (n,).

        The torques `held` (m,) act until the first sample does.
        """
        return self.controller.initial_state(*self.measurement.read(q, v), held)

    def _law_inputs(self, *, written_out: bool = True) -> list[Any]:
        """Symbols of `law`: scalars, or those with which the parts of a law are called."""
        called = not written_out and self.controller.function.is_a("MXFunction")
        kind = ca.MX if called else ca.SX
        m, n, n_z = self.truth.m, self.truth.n, self.controller.n_state
        sizes = {"s": 1, "z": n_z, "q_d": m, "v_d": m, "a_d": m, "q": n, "v": n}
        sizes["numbers"] = len(self.law_numbers)
        return [kind.sym(name, size) for name, size in sizes.items()]

    def _limited(self, inputs: list[Any]) -> tuple[Any, Any]:
        *arguments, q, v, numbers = inputs
        seen, own = self.measurement.function(q, v), len(self.controller.numbers)
        last = [numbers[:own, 0]] if own else []
        tau, z_rate = self.controller.function(*arguments, *seen, *last)
        finite, n_i = np.isfinite(self.torque_limit), self.controller.n_integral
        if not finite.any():
            return self._in_steps(tau, numbers), z_rate
        end = own + int(finite.sum())
        bounds, tracking = numbers[own:end, 0], numbers[end : end + len(self._tracking), 0]
        limited = limit_torque(tau, finite, bounds)
        acting = limit_torque(self._in_steps(limited, numbers), finite, bounds)
        if self.controller.observer or not n_i:  # with one, the law has stopped its integrals
            return acting, z_rate
        within = self.controller.inside or self.controller  # states that wait settle by themselves
        sizes = n_i, within.n_state - n_i
        stops = integral_rates(inputs[1], tau, z_rate, limited, sizes, tracking)
        return acting, ca.vertcat(stops, z_rate[n_i:, 0])  # with one entry [1:] would be a row

    def _in_steps(self, tau: ca.SX, numbers: ca.SX) -> ca.SX:
        """Torques (m, 1) rounded to the nearest of their steps, if there are any."""
        if not self.controller.design.loop.torque_resolution:
            return tau
        return round_to(numbers[-1], tau)


def _kept_shapes(error: ShapeChange) -> str:
    """Say that modes have the shapes of another arm, and how much that matters."""
    head = "the modes have the shapes of the arm before its numbers were changed; rebuilt "
    if not np.isfinite(error.change):
        return f'{head}(at with shapes="rebuilt"), {error.line} would have more or fewer of them'
    return (
        f'{head}(at with shapes="rebuilt"), the frequencies of the clamped lines with the loads at '
        f"their tips would change by up to {100 * abs(error.change):.2g} % (mode {error.mode} of "
        f"{error.line})"
    )


def _digest(function: ca.Function) -> str:
    return hashlib.sha256(function.serialize().encode()).hexdigest()


def close_loop(
    controller: Controller,
    arm: Arm | str | Path,
    basis: BasisChoice | None = None,
    *,
    modes: int | None = None,
    elements: int | None = None,
) -> ClosedLoop:
    """Close a controller around the arm as it is.

    Parameters
    ----------
    controller
        Result of `design_controller` or `wrap_controller`.
    arm
        The arm as it is, its catalogue name or path.
    basis, modes, elements
        Discretisation of the truth plant: one of them, or none for that of the model file, else
        two modes more than the controller's own plant.

    Raises
    ------
    InputError
        When the arm has other joints or lines than the controller was made for, or an argument is
        of another type.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> flexctl.close_loop(controller, "single-link-hub", elements=4)
    ClosedLoop(hub-pd on single-link-hub, 4 elements)
    """
    makers = "design_controller or wrap_controller makes one"
    checks.kind("controller", controller, Controller, hint=makers)
    arm = load_model(arm)
    chosen = pick_basis(basis, modes, elements) or default_truth(arm, controller.plant.basis)
    truth = assemble_plant(arm, chosen, parameters=nonzero_numbers(arm))
    return close_around(controller, truth)


def require_loop(value: object, *others: type) -> None:
    """Refuse what is no closed loop and none of `others`, such as a controller by itself."""
    checks.kind("loop", value, ClosedLoop, *others, hint="close_loop(controller, arm) makes one")


def close_around(controller: Controller, truth: Plant) -> ClosedLoop:
    """Close a controller around a truth plant; see `close_loop`.

    A prescribed motion is that of the truth plant itself, see `as_driven`. Raises
    InputError when the truth has other joints or lines than the controller was made for.
    """
    if truth.joints != controller.plant.joints or truth.lines != controller.plant.lines:
        raise InputError(
            f"{truth.arm.name}: expected joints {controller.plant.joints} and elastic lines "
            f"{controller.plant.lines}, got {truth.joints} and {truth.lines}"
        )
    if is_prescribed(controller.design):
        arm = as_driven(truth.arm)
        kept = tuple(name for name in truth.parameters if name in known_numbers(arm))
        links = zip(truth.bodies, arm.links, strict=True)
        bodies = tuple(replace(body, link=link) for body, link in links)
        truth = replace(truth, arm=arm, bodies=bodies, parameters=kept)
        controller = design_on(truth, controller.design)
    own, positions = controller.plant, controller.design.loop.strain_gauges
    if controller.fitted:
        measured = measure_instruments(controller.fitted, own, truth)
        return ClosedLoop(controller=controller, truth=truth, measurement=measured)
    measurement = (
        measure_signals(controller.external.measures, own, truth, positions)
        if controller.external
        else make_measurement(own, truth, positions)
    )
    return ClosedLoop(controller=controller, truth=truth, measurement=measurement)
