"""Controllers: a law from reference and measurement to torques, as a CasADi function.

Where a motor takes a current or a voltage, the law's "torque" is that command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.fast_loop import FastFeedback
from flexctl.control.filters import filtered_joints
from flexctl.control.laws import (
    ExternalLaw,
    LawParts,
    Recipe,
    check_law,
    graph_symbols,
    input_symbols,
    law_function,
    law_key,
    law_slopes,
    share_law,
)
from flexctl.control.lqr import GivenFeedback, StateFeedback
from flexctl.control.observer import Observer
from flexctl.control.observer_based_law import ObservedStates
from flexctl.control.readings import Instrumentation
from flexctl.control.reference import ReferenceMotion
from flexctl.control.sampled_observer import SampledObserver
from flexctl.control.sampled_readings import CYCLE, NOISE
from flexctl.model import (
    Design,
)
from flexctl.plant import (
    Evaluator,
    Plant,
    Wanted,
    backend,
    compile_functions,
)
from flexctl.records import Summary

_SOLVES = 3  # of own states at rest: filters, torques that wait for them, and what reads these


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
        Instruments that the law reads; None where it measures the state or its ideal instruments.
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
    inside
        The law of the measured state that instruments or an observer feed; None without them.

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
    inside: LawParts | None = None

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
        """Length of a run [s]: the file's, else the usual one."""
        return self.design.loop.duration or self.usual_duration

    @property
    def usual_duration(self) -> float:
        """Length of a run [s] if the file says nothing: the reference's and 0.5 s."""
        return self.reference.usual_run

    @property
    def measured(self) -> tuple[str, ...]:
        """Names of the positions that are inputs of the law, their rates being inputs too.

        Of a law that reads instruments the readings, which have no rates.
        """
        if self.fitted:
            return self.fitted.names
        return self.external.measures if self.external else self.plant.coordinates

    @property
    def reads_instruments(self) -> bool:
        """Whether the law reads instruments, or signals that it names, and not the state itself."""
        return not (self.fitted is self.observer is self.external is None)

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
    def n_waiting(self) -> int:
        """Number of own states, the last ones, that a sampled observer has beside its estimate.

        Readings, torques and outputs that wait, and noise.
        """
        return self._estimated.n_own if self._estimated else 0

    @property
    def _estimated(self) -> ObservedStates | None:
        """States of a sampled observer; None without one."""
        if not isinstance(self.observer, SampledObserver):
            return None
        return ObservedStates(
            observer=self.observer, fitted=self.fitted, delay=self.delay, m=self.plant.m
        )

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
    def cycle(self) -> int:
        """Number of samples after which a sampled law repeats: all its readings are new again."""
        return self.fitted.cycle if self.fitted else 1

    @property
    def cycle_row(self) -> int:
        """Row of z that numbers the samples of the cycle from 1 on; 0 there is a law at rest."""
        return self._own_rows.start + self.own_states.index(CYCLE)

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
            inputs = graph_symbols(self.function)
            J, m = law_slopes(self.function, (5, 6, 1))(*inputs), self.plant.m
            outputs = [
                part[:, a] for part in (J[:m, :], J[m:, :]) for a in (slice(n), slice(n, None))
            ]
            return ca.Function("law_jacobian", inputs, outputs)

        return share_law(f"jacobian {self.key}", make)

    @cached_property
    def law_by_reference(self) -> ca.Function:
        """Inputs of `function` -> derivatives of tau and dz/dt by [q_d; v_d; a_d].

        Of the sizes (m, 3m) and (n_z, 3m).
        """

        def make() -> ca.Function:
            inputs = graph_symbols(self.function)
            J, m = law_slopes(self.function, (2, 3, 4))(*inputs), self.plant.m
            return ca.Function("law_by_reference", inputs, [J[:m, :], J[m:, :]])

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

    def on(self, plant: Plant) -> Controller:
        """Return this controller on its plant with other numbers; both share their functions."""
        other = replace(self, plant=plant)
        other.__dict__["_evaluators"] = self._evaluators
        if self.unlimited is not None:
            other.__dict__["without_limits"] = self.without_limits.on(plant)
        return other

    @cached_property
    def without_limits(self) -> Controller:
        """The controller with unlimited torques."""
        return (
            self if self.unlimited is None else replace(self, recipe=self.unlimited, unlimited=None)
        )

    @property
    def of_state(self) -> Controller:
        """The controller that measures the state, in place of instruments and an observer."""
        if self.inside is None:
            return self
        return replace(
            self,
            recipe=self.inside.law,
            n_state=self.inside.n_state,
            own_states=self.inside.own_states,
            **dict.fromkeys(("observer", "fitted", "unlimited", "expanded", "inside")),
        )

    def initial_state(
        self, q: Array | None = None, v: Array | None = None, held: Array | None = None
    ) -> Array:
        """State of the law at the start (n_z,): integrals zero, the observer's first estimate.

        Own states are those of rest with the reference held at its start and measured q, v (n,);
        zero if these are not given. A sampled observer knows the torques `held` (m,) until the
        first sample acts, by default those of the law, and expects the late readings of its
        estimate.
        """
        z = self._state_with(self.observer.start if self.observer else np.zeros(0))
        if q is None or v is None:
            return z
        if not (states := self._estimated):
            return self._settled(z, q, v, self.reference.start)
        late = [i for i, _ in states.observer.readings.waiting]
        end = self._own_rows.stop - len(late)
        z[end : end + len(late)] = self._expected(states)[late]
        z = self._settled(z, q, v, self.reference.start, until=end)
        if held is not None:
            z[end - states.waiting * self.plant.m : end] = np.tile(held, states.waiting)
        return z

    def _expected(self, states: ObservedStates) -> Array:
        """Compute the readings (p,) without delay of the design plant at the first estimate."""
        plant, n = self.plant, self.plant.n
        q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
        read = ca.Function("read", [q, v, *plant.free_input], [states.outputs(plant, q, v)])
        numbers = [plant.numbers] if plant.parameters else []
        start = states.observer.start
        return np.asarray(read(start[:n], start[n:], *numbers)).ravel()

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

    def _settled(
        self,
        z: Array,
        q: Array,
        v: Array,
        *desired: Array,
        weight: float = 0.0,
        until: int | None = None,
    ) -> Array:
        """Return the state z (n_z,) with own states at rest, or those in rows `until` another one.

        One after the other their equations are linear: torques that wait are limited and rounded
        outputs of filters, of which the slopes at another state say nothing.
        """
        own = self._own_rows
        if not self.own_states:
            return z
        solved = np.arange(own.start, own.stop if until is None else until)
        held = [*desired, *[np.zeros(self.plant.m)] * (3 - len(desired))]
        last = [self.numbers] if len(self.numbers) else []
        rested, k = z.copy(), solved - own.start
        for _ in range(_SOLVES):
            rate, slopes = self._own_rates(np.array([weight]), rested, *held, q, v, *last)
            rate, slopes = rate.ravel()[k], slopes[np.ix_(k, k)]
            rested[solved] -= np.linalg.lstsq(slopes, rate, rcond=None)[0]
            if self.cycle > 1:
                rested[self.cycle_row] = 0.0  # where all are read, with the mean gain
        if self.cycle > 1:
            rested[self.cycle_row] = 1.0
        return rested

    @cached_property
    def _own_rates(self) -> Evaluator:
        """Inputs of `function` -> rates (n,) of the own states and their derivatives (n, n)."""

        def make() -> Evaluator:
            inputs = graph_symbols(self.function)
            rows = self._own_rows
            rate = self.function(*inputs)[1][rows, 0]
            results = [ca.densify(rate), ca.densify(ca.jacobian(rate, inputs[1])[:, rows])]
            function = ca.Function("own_rates", inputs, results, {"cse": True})
            return Evaluator(function, matrix=True)

        return share_law(f"own rates {self._own_rows} {self.key}", make)
