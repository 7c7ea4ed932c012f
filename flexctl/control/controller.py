"""Controllers: a law from reference and measurement to torques, as a CasADi function.

Where a motor takes a current or a voltage, the law's "torque" is that command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.fast_loop import FastFeedback
from flexctl.control.fed_reference import feed_reference
from flexctl.control.filters import filtered_joints, filtered_law
from flexctl.control.fitted_law import fit_law
from flexctl.control.friction_compensation import compensated_law
from flexctl.control.laws import (
    ExternalLaw,
    LawParts,
    Recipe,
    check_law,
    input_symbols,
    law_function,
    law_key,
    share_law,
)
from flexctl.control.lqr import GivenFeedback, StateFeedback
from flexctl.control.method_law import law_of_method
from flexctl.control.observer import Observer
from flexctl.control.prescribed_motion import is_prescribed
from flexctl.control.readings import Instrumentation
from flexctl.control.reference import ReferenceMotion, make_reference
from flexctl.control.sampled_observer import SampledObserver
from flexctl.control.sampled_readings import NOISE
from flexctl.control.saturation import torque_limits
from flexctl.control.shaped_reference import shape_reference
from flexctl.errors import InputError
from flexctl.model import (
    CHOSEN_GAINS,
    Arm,
    BasisChoice,
    Design,
    check_design,
    load_design,
    load_matrices,
    load_model,
    refuse,
    set_aside,
    with_values,
)
from flexctl.plant import (
    Evaluator,
    Plant,
    Wanted,
    assemble_plant,
    backend,
    compile_functions,
    is_stiffness_error,
    linearise,
    nonzero_numbers,
)
from flexctl.records import Summary, plain


@dataclass(frozen=True, kw_only=True, repr=False)
class Controller(Summary):
    """A controller designed on a plant with n coordinates, for m joints.

    Attributes
    ----------
    design
        The design file it comes from.
    plant
        Design plant; the law measures its q and v.
    reference
        Desired motion.
    recipe
        The law as a recipe, or as a function; see `law` and `function`.
    n_state
        Number n_z of states: integrals, 0 or m, or the states of an external law; then own states
        of the law, and the observer's estimate, 2n.
    torque_limit
        Largest torque, or command of a motor, per joint (m,) [N m, N; A, V]; infinite where the arm
        has none.
    feedback
        The second loop with its evidence, none where its gain is given; None without one.
    fast
        The fast loop of composite control, always active, with its evidence; None without one.
    observer
        The observer with its evidence; None where the state is measured.
    fitted
        Instruments that the law reads in samples; None where what it measures is ideal.
    external
        Properties of an external law; None for a law of this library.
    unlimited
        `recipe` without torque limits and without rounding, if the law includes them, else None.
    expanded
        `without_limits` with more states, the last ones: the torques and the rates of the design
        plant in it, whose values it gives in place of their rates; None but of a sampled observer.
    assumptions
        Assumptions of the design, in sentences.
    weights
        Weights and decay that were set aside for chosen gains, by table of the design and key; None
        where none were.
    own_states
        Names of the own states of the law, such as those of filters: they rest where the reference
        is held, and a run begins with them at rest.

    Examples
    --------
    >>> import flexctl
    >>> flexctl.design_controller("single-link-hub", "hub-pd").collocated
    True
    """

    design: Design
    plant: Plant
    reference: ReferenceMotion
    recipe: ca.Function | Recipe
    n_state: int
    torque_limit: Array
    feedback: StateFeedback | GivenFeedback | None
    fast: FastFeedback | None
    assumptions: tuple[str, ...]
    observer: Observer | SampledObserver | None = None
    fitted: Instrumentation | None = None
    external: ExternalLaw | None = None
    unlimited: ca.Function | Recipe | None = None
    expanded: ca.Function | Recipe | None = None
    weights: Mapping[str, Mapping[str, Any]] | None = None
    own_states: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Controller({self.design.name}: {self.design.method} for {self.plant.arm.name}, "
            f"designed on {self.plant.basis.label})"
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "design": self.design.name,
            "method": self.design.method,
            "model": self.plant.arm.name,
            "basis": self.plant.basis.label,
            "measured": ", ".join(self.measured),
            "states": self.n_state,
            "sample_time": self.sample_time or "continuous",
            "delay": self.delay or None,
            "duration": self.duration,
            "torque_limit": self.torque_limit,
        }

    def __post_init__(self) -> None:
        if not isinstance(self.recipe, Recipe):
            self._check(self.recipe)
        checks.shape("reference.final", self.reference.final, (self.plant.m,))

    def at(
        self,
        of_plant: Mapping[str, ArrayLike],
        of_design: Mapping[str, ArrayLike] | None = None,
        *,
        rebuilt: bool = False,
    ) -> Controller:
        """Return the controller designed with other numbers of its plant and its design, by key.

        See `Plant.at`, and with `rebuilt` `Plant.rebuilt`. Gains that are chosen stay until
        weights, a decay or noise are given for their loop: then they follow from these, and weights
        and a decay that are not given are those they had before. Errors of the stiffness leave all
        gains as they are.
        Raises InputError and DesignError as `design_controller`.
        """
        of_design = of_design or {}
        plant = self.plant.at(of_plant) if of_plant else self.plant
        if not (of_design or rebuilt) and all(map(is_stiffness_error, of_plant)):
            return replace(self, plant=plant)
        plant = plant.rebuilt() if rebuilt else plant
        self._check_chosen(of_design)
        columns = self.fast.scales.names if self.fast else ()
        own, weights = self.design, self.weights
        design = with_values(own, of_design, weights=weights, columns=columns)
        return replace(design_on(plant, design), weights=set_aside(own, design, weights))

    def _check_chosen(self, values: Mapping[str, ArrayLike]) -> None:
        """Refuse chosen gains of another size, or of a loop that there is not."""
        m, n, sizes = self.plant.m, self.plant.n, dict[str, tuple[int, int]]()
        if self.feedback:
            sizes["second_loop.gain"] = (m, 2 * n)
        if self.observer:
            sizes["observer.gain"] = self.observer.gain.shape
        if self.fast:
            sizes |= dict.fromkeys(
                ("fast_loop.Kp", "fast_loop.Kv"), (m, len(self.fast.scales.names))
            )
        for key in [key for key in values if key in CHOSEN_GAINS]:
            if key not in sizes:
                loop = "an observer" if key == "observer.gain" else f"a {key.split('_')[0]} loop"
                raise InputError(f"{key}: expected a controller with {loop}, got none")
            checks.shape(key, values[key], sizes[key])

    def _check(self, law: ca.Function) -> None:
        own = self.recipe.n_numbers if isinstance(self.recipe, Recipe) else 0
        measured = len(self.measured)
        check_law(self.plant, law, n_state=self.n_state, measured=measured, numbers=own)

    @cached_property
    def law(self) -> ca.Function:
        """CasADi function (s, z, q_d, v_d, a_d, q, v) -> (tau, z_rate), all numbers folded in.

        Weight s [-] of the second loop (0 in the gross motion, 1 after the switch), state z (n_z,)
        of the law, desired motion and measured q, v (n,), or for an external law its measured
        positions and their rates (p,); torques tau (m,) and dz/dt (n_z,). Torques are not limited
        here, except with an observer, which uses the limited torques.
        """
        if isinstance(self.recipe, Recipe):
            return self.recipe.folded(self.plant)
        if not len(self.numbers):
            return self.recipe
        *inputs, _ = input_symbols(self.recipe)
        tau, z_rate = self.recipe.call([*inputs, ca.SX(self.numbers)])
        return law_function(inputs, tau, z_rate)

    @cached_property
    def function(self) -> ca.Function:
        """The same with the `numbers` of design plant and law as the last input, if there are any.

        Controllers that differ only in these numbers share it.
        """
        if not isinstance(self.recipe, Recipe):
            return self.recipe
        function = self.recipe.function(self.plant)
        self._check(function)
        return function

    @cached_property
    def numbers(self) -> Array:
        """Values (k,) of the numbers that are the last input of `function`."""
        if isinstance(self.recipe, Recipe):
            return self.recipe.column(self.plant)
        return np.zeros(0) if self.recipe.n_in() == 7 else self.plant.numbers

    @cached_property
    def key(self) -> str:
        """Everything that determines `function`, as text."""
        return law_key(self.recipe, self.plant)

    @property
    def name(self) -> str:
        """Name in tables and figures: that of its design."""
        return self.design.name

    @property
    def sample_time(self) -> float | None:
        """Sampling period [s]; None for a continuous law."""
        return self.design.loop.sample_time or None

    @property
    def tracking(self) -> Array:
        """Tracking time [s] of back-calculation (1,); empty with clamping."""
        time = self.design.loop.tracking_time
        return np.zeros(0) if time is None else np.array([time])

    @property
    def delay(self) -> float:
        """Time [s] from sampling until the torque takes effect."""
        return self.design.loop.delay

    @property
    def blend(self) -> float:
        """Time [s] over which the second loop fades in; 0: at once."""
        second = self.design.second_loop
        return second.switch.blend if second and second.switch else 0.0

    @property
    def final_second_loop_weight(self) -> float:
        """Weight of the second loop [-] once the reference has ended: 1, or 0 without one."""
        return float(self.feedback is not None)

    @property
    def duration(self) -> float:
        """Length of a run [s]: the file's, else the reference's and 0.5 s."""
        return self.design.loop.duration or self.reference.duration + 0.5

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the positions that are inputs of the law, their rates being inputs too.

        Of a law that reads instruments the readings, which have no rates.
        """
        if self.fitted:
            return self.fitted.names
        return self.external.measures if self.external else self.plant.coordinates

    @property
    def n_own(self) -> int:
        """Number of states of an external law, and of own states: they may be as fast as the arm.

        They follow the integrals in z.
        """
        return self.n_state - 2 * self.n_estimated - self.n_integral

    @property
    def moves_fast(self) -> bool:
        """Whether possibly fast states of the law vary between two events of a run."""
        return self.sample_time is None and (self.observer is not None or self.n_own > 0)

    @property
    def as_fast_as_the_arm(self) -> bool:
        """Whether states that vary between two events may be faster than any step of a run.

        Those of an observer and of an external law may be, but not own states.
        """
        return self.moves_fast and (self.observer is not None or self.external is not None)

    @property
    def n_estimated(self) -> int:
        """Number of coordinates that an observer estimates, with their rates: n or 0."""
        return self.plant.n if self.observer else 0

    @property
    def n_integral(self) -> int:
        """Number of integral states, the first of z."""
        return 0 if self.external else self._own_rows.start

    @property
    def noise_rows(self) -> slice:
        """Rows of z that hold the noise of a sample: of the readings in `fitted.noisy`."""
        start = self._own_rows.start
        rows = [start + k for k, name in enumerate(self.own_states) if name.startswith(NOISE)]
        return slice(rows[0], rows[-1] + 1) if rows else slice(0, 0)

    @property
    def _own_rows(self) -> slice:
        """Rows of z of the own states that `own_states` names."""
        end = self.n_state - 2 * self.n_estimated
        return slice(end - len(self.own_states), end)

    @property
    def part_of_state(self) -> Array:
        """Numbers (n_z,) of the linear parts of the law, such as filters, that states belong to.

        A sampled law holds the input of each of its parts over a sample.
        """
        names, start, m = self.own_states, self._own_rows.start, self.plant.m
        filters = iter(one.states for one in self.design.filters for _ in filtered_joints(one, m))
        sizes, done = [1] * start, 0
        while done < len(names):
            alike = next((k for k, x in enumerate(names[done:]) if x != names[done]), None)
            size = len(names) - done if alike is None else alike
            size = next(filters, size) if " filter of " in names[done] else size
            sizes.append(size)
            done += size
        sizes.append(2 * self.n_estimated)
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached_property
    def law_jacobian(self) -> ca.Function:
        """Inputs of `function` -> derivatives of tau by [q; v] and z, and of dz/dt by the same.

        Of the sizes (m, 2n), (m, n_z), (n_z, 2n), (n_z, n_z), with p for n of an external law.
        """
        n = 2 * len(self.measured)

        def make() -> ca.Function:
            inputs, slopes = self._slopes((5, 6, 1))
            outputs = [ca.densify(block) for J in slopes for block in (J[:, :n], J[:, n:])]
            return ca.Function("law_jacobian", inputs, outputs, {"cse": True})

        return share_law(f"jacobian {self.key}", make)

    @cached_property
    def law_by_reference(self) -> ca.Function:
        """Inputs of `function` -> derivatives of tau and dz/dt by [q_d; v_d; a_d].

        Of the sizes (m, 3m) and (n_z, 3m).
        """

        def make() -> ca.Function:
            inputs, slopes = self._slopes((2, 3, 4))
            outputs = [ca.densify(J) for J in slopes]
            return ca.Function("law_by_reference", inputs, outputs, {"cse": True})

        return share_law(f"by reference {self.key}", make)

    def evaluate(self, name: str, *arguments: ArrayLike) -> tuple[Array, ...]:
        """Evaluate `function` ("law"), `law_jacobian` or `law_by_reference` with the numbers.

        The arguments are those of `law`. Compiled unless the design plant stays interpreted.
        """
        last = (self.numbers,) if len(self.numbers) else ()
        if name not in self._evaluators:
            self._evaluators[name] = self._evaluator(name)
        first, *others = self._evaluators[name](*map(np.asarray, arguments), *last)
        return (np.asarray(first), *others)

    @cached_property
    def _evaluators(self) -> dict[str, Evaluator]:
        """Evaluators that have been used, by name."""
        return {}

    def _evaluator(self, name: str) -> Evaluator:
        interpreted, matrices = self.plant.interpreted, name != "law"

        def make() -> Evaluator:
            compiles = not interpreted and name != "law_by_reference"
            path = compile_functions(*self.library(name)) if compiles else None
            function = self.library(name)[1]()[0] if path is None else ca.external(name, str(path))
            return Evaluator(function, matrix=matrices)

        return share_law(f"evaluator {name} {interpreted} {backend()} {self.key}", make)

    def library(self, name: str) -> Wanted:
        """Return the library of a function that `evaluate` knows."""
        attribute = "function" if name == "law" else name
        return f"{name} {self.key}", lambda: [getattr(self, attribute)]

    def _slopes(self, by: tuple[int, ...]) -> tuple[list[ca.SX], list[ca.SX]]:
        """Symbols of all inputs of `function`, and derivatives of both results by some of them."""
        inputs = input_symbols(self.function)
        state = ca.vertcat(*(inputs[k] for k in by))
        return inputs, [ca.jacobian(part, state) for part in self.function(*inputs)]

    @cached_property
    def collocated(self) -> bool:
        """Whether the law uses only the coordinates on which the torques act."""
        if self.observer:
            return False
        places = [one.place for one in self.fitted.readings] if self.fitted else self.measured
        read = [self.function.jac_sparsity(row, column) for row in (0, 1) for column in (5, 6)]
        entries = {column for part in read for column in part.get_triplet()[1]}
        drives = {self.plant.coordinates[row] for row in self.plant.drives}
        return {places[column] for column in entries} <= drives

    @cached_property
    def without_limits(self) -> Controller:
        """The controller with unlimited torques."""
        return (
            self if self.unlimited is None else replace(self, recipe=self.unlimited, unlimited=None)
        )

    def initial_state(self, q: Array | None = None, v: Array | None = None) -> Array:
        """State of the law at the start (n_z,): integrals zero, the observer's first estimate.

        Own states are those of rest with the reference held at its start and measured q, v (n,);
        zero if these are not given.
        """
        z = self._state_with(self.observer.start if self.observer else np.zeros(0))
        return z if q is None or v is None else self._settled(z, q, v, self.reference.start)

    def agreeing_state(
        self,
        q: Array,
        v: Array,
        *desired: Array,
        weight: float = 0.0,
        estimate: tuple[Array, Array] | None = None,
    ) -> Array:
        """State of the law (n_z,) with zero integrals and measured q, v (n,) as the estimate.

        Own states are at rest with `desired` q_d, v_d, a_d (m,), zero where not given, and this
        weight of the second loop. Where q are readings, the `estimate` is given.
        """
        z = self._state_with(np.concatenate(estimate or (q, v)) if self.observer else np.zeros(0))
        return self._settled(z, q, v, *desired, weight=weight)

    def _state_with(self, estimate: Array) -> Array:
        """State of the law (n_z,) with an estimate; integrals and own states are zero."""
        return np.concatenate([np.zeros(self.n_integral + self.n_own), estimate])

    def _settled(self, z: Array, q: Array, v: Array, *desired: Array, weight: float = 0.0) -> Array:
        """Return the state z (n_z,) with own states at rest: a linear equation, as all are."""
        if not self.own_states:
            return z
        held = [*desired, *[np.zeros(self.plant.m)] * (3 - len(desired))]
        last = [self.numbers] if len(self.numbers) else []
        rate, slopes = self._own_rates(np.array([weight]), z, *held, q, v, *last)
        rested = z.copy()
        rested[self._own_rows] -= np.linalg.lstsq(slopes, rate.ravel(), rcond=None)[0]
        return rested

    @cached_property
    def _own_rates(self) -> Evaluator:
        """Inputs of `function` -> rates (n,) of the own states and their derivatives (n, n)."""

        def make() -> Evaluator:
            inputs = input_symbols(self.function)
            rows = self._own_rows
            rate = self.function(*inputs)[1][rows, 0]
            results = [ca.densify(rate), ca.densify(ca.jacobian(rate, inputs[1])[:, rows])]
            function = ca.Function("own_rates", inputs, results, {"cse": True})
            return Evaluator(function, matrix=True)

        return share_law(f"own rates {self._own_rows} {self.key}", make)


def _require_possible_rates(arm: Arm, design: Design, reference: ReferenceMotion) -> None:
    """Refuse a reference that exceeds the rate limit of a joint."""
    if all(link.limits.rate is None for link in arm.links):
        return
    fastest = np.abs(reference.sample(np.linspace(0, reference.duration, 501))[1]).max(axis=1)
    for j, (link, rate) in enumerate(zip(arm.links, fastest, strict=True)):
        limit = link.limits.rate
        if limit is not None and rate > limit * (1 + 1e-9):
            raise InputError(
                f"{design.label}: reference.duration: expected a motion of at most {limit:g} per s "
                f"at joint{j + 1} (limits.rate of {link.name} of {arm.name}), got {rate:.4g}"
            )


def _names(design: Design, arm: Arm) -> bool:
    """Whether a design's `model` is this arm, by name or by path."""
    known = {arm.name, arm.path.stem if arm.path else arm.name}
    path = Path(design.model)
    if design.model in known or path.suffix.lower() != ".toml":
        return design.model in known
    beside = design.path.parent / path if design.path else path
    there = [file.resolve() for file in (path, beside) if file.is_file()]
    return arm.path.resolve() in there if there and arm.path else path.stem in known


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


def design_on(plant: Plant, design: Design) -> Controller:
    """Design the controller of a design file on an existing plant.

    The plant keeps its equations of motion, so that varying the gains is cheap.

    Parameters
    ----------
    plant
        Design plant of the arm as the designer knows it; friction of its joints is left out.
    design
        Method, gains, weights, reference; its `basis` is not used.

    Raises
    ------
    InputError, DesignError
        As `design_controller`.
    """
    plant, arm = plant.without_friction, plant.arm
    check_design(arm, design)
    motion = make_reference(design)
    parts = law_of_method(plant, design, motion)
    if design.friction_compensation:
        parts = compensated_law(parts, plant, design.friction_compensation)
    parts = feed_reference(plant, parts, design.reference.feeds)
    if design.filters:
        parts = filtered_law(plant, parts, design, motion)
    slopes = partial(_law_slopes, plant, design, motion, parts)
    reference = shape_reference(motion, design, plant.nominal, slopes)
    _require_possible_rates(arm, design, reference)
    fit = fit_law(plant, design, reference, parts)
    parts, assumptions = fit.parts, fit.parts.assumptions
    if reference.shaper:
        assumptions += (reference.shaper.assumption,)
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
        assumptions=assumptions,
        own_states=parts.own_states,
    )


def _law_slopes(
    plant: Plant, design: Design, motion: ReferenceMotion, parts: LawParts
) -> tuple[Array, ...]:
    """Slopes of the law of the gross motion where the reference ends, without observer.

    See `Controller.law_jacobian`.
    """
    if parts.external is not None:
        expected = "numbers or modes of the arm, as the law comes from outside"
        got = design.reference.shaper and design.reference.shaper.frequency
        raise refuse(design.label, "reference.shaper.frequency", expected=expected, got=got)
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
    return controller.evaluate("law_jacobian", *given)


def gains_used(controller: Controller) -> dict[str, Any]:
    """Return every gain of a controller by name, as numbers and nested lists.

    `Gp`, `Gv`, `Gi` of the joint loop as the file has them, or the keys of a cascade, filters and
    position feedback; `K` (m, 2n) of the second loop,
    `Kp`, `Kv` (m, n_z) of the fast loop at the final pose, `L` (2n, p) of the observer; `A`, `B`,
    `C`, `D` of an external law of matrices; `shaper`, with the impulses of a shaped reference.
    """
    design, gains = controller.design, {}
    if design.gains:
        gains |= design.gains.model_dump(exclude_none=True)
    if design.slow_loop:
        gains["slow_loop"] = design.slow_loop.table()
    if design.cascade:
        gains |= design.cascade.model_dump(exclude_none=True)
    for key in ("position_feedback", "filters"):
        if tables := getattr(design, key):
            gains[key] = [one.table() for one in tables]
    if controller.feedback:
        gains["K"] = controller.feedback.gain.tolist()
    if controller.fast:
        gains |= {"Kp": controller.fast.Kp.tolist(), "Kv": controller.fast.Kv.tolist()}
    if controller.observer:
        gains["L"] = controller.observer.gain.tolist()
    if design.state_space and design.state_space.function is None:
        matrices = vars(load_matrices(design, controller.plant.m))
        gains |= {name: M.tolist() for name, M in matrices.items()}
    if shaper := controller.reference.shaper:
        gains["shaper"] = plain(vars(shaper))
    return gains
