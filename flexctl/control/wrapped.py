"""External controllers as controllers of this library: `wrap_controller`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import casadi as ca
import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.controller import Controller
from flexctl.control.controller_design import design_on
from flexctl.control.measured_signals import measurable, plain_name, read_input
from flexctl.control.reference import ReferenceMotion, make_reference
from flexctl.errors import InputError
from flexctl.model import (
    Arm,
    BasisChoice,
    Design,
    Reference,
    build,
    load_design,
    load_model,
    nearest,
)
from flexctl.plant import Plant, assemble_plant, nonzero_numbers

_DEFAULT_LABEL = re.compile(r"[uy]\[\d+\]")  # default names of signals in python-control
_SAME = 1e-9  # relative: dt and sample_time that differ by less are equal
_KINDS = (
    "a StateSpace, a TransferFunction or gains of python-control, a matrix, or a CasADi function"
)


def wrap_controller(
    system: Any,
    plant: Plant | Arm | str | os.PathLike[str],
    reference: ReferenceMotion | Reference | Design | Mapping[str, Any] | str,
    *,
    measures: Sequence[str] | None = None,
    sample_time: float | None = None,
    name: str = "controller",
    feedforward: Literal["gravity"] | None = None,
    duration: float | None = None,
    settle_within: float | None = None,
    delay: float = 0.0,
    strain_gauges: Sequence[float] | None = None,
    inputs: Literal["errors", "measurements"] = "errors",
) -> Controller:
    """Wrap an external law as a controller, which can be used like a designed one.

    tau = C z + D e with z' = A z + B e, or z+ if sampled: errors e, reference minus measurement, in
    the order of `measures`; torques tau [N m or N], or commands of motors [A or V], in the order
    of the joints. z starts at zero.

    Parameters
    ----------
    system
        A StateSpace or TransferFunction of python-control, a matrix of gains (the K of
        ``control.lqr``, which acts as u = K (x_desired - x)), a result of ``lqr``, ``mixsyn`` or
        ``hinfsyn`` as it is returned; or a CasADi function (t, z, q_d, v_d, a_d, y) -> (tau, z'),
        z+ if sampled, of time [s], states (n_z,), desired motion (m,) and measurements y.
        A system with named signals is matched by name: inputs ``joint1`` (an error),
        ``measured_joint1``, ``desired_joint1``, outputs ``tau_joint1``.
    plant
        The arm as the controller knows it: it defines elastic coordinates and the gravity
        feedforward. An arm or its name is discretised with 2 modes.
    reference
        Desired motion; a design, for its reference and the length of its run; or a table as in a
        design file.
    measures
        Signals of the true arm, of which errors are the inputs: joints, rotors, ``tip_x``, ends of
        lines such as ``link1_y``, gauges such as ``link1_y_gauge1``, and their rates
        (``joint1_rate``) [rad, m, 1/m, per s]; elastic coordinates of the plant through gauges. By
        default the names of the system's inputs.
    sample_time, delay
        Sampling period and time until a sample acts [s]; by default that of the system, and 0.
    name
        Name in tables and figures.
    feedforward
        "gravity" adds the gravity torques of the undeflected arm at the desired joints.
    duration
        Length of a run [s]; by default the design's, else that of the reference and 0.5 s.
    settle_within
        Tip error [m] within which the arm counts as settled; by default the design's, else 1e-4.
    strain_gauges
        Positions x/l of the gauges on every line.
    inputs
        "measurements" for a law u = K y of measurements minus references, as ``hinfsyn`` returns
        one for a plant whose last outputs are measurements and not errors.

    Returns
    -------
    Controller
        A controller of method ``state-space``, usable wherever a designed one is.

    Raises
    ------
    InputError
        When the system does not fit the arm or its own description, or an argument is of another
        type.

    Examples
    --------
    >>> import control, flexctl
    >>> pd = control.ss([], [], [], [[20.0, 6.0]])
    >>> flexctl.wrap_controller(
    ...     pd, "single-link-hub", "hub-pd", measures=["joint1", "joint1_rate"], name="mine"
    ... )
    Controller(mine: state-space for single-link-hub, designed on 2 modes)
    """
    if not isinstance(plant, Plant):
        arm = load_model(plant)
        plant = assemble_plant(arm, BasisChoice(), parameters=nonzero_numbers(arm))
    period = None if sample_time is None else checks.number("sample_time", sample_time)
    for key, values in (("measures", measures), ("strain_gauges", strain_gauges)):
        if values is not None:
            checks.kind(key, values, list, tuple, np.ndarray, hint="one entry each")
    gauges = None if strain_gauges is None else tuple(strain_gauges)
    law = _read_system(system, name)
    if inputs == "measurements":
        law = law.turned()
    elif inputs != "errors":
        raise InputError(f"inputs: expected 'errors' or 'measurements', got {inputs!r}")
    law = law.matched(plant, None if measures is None else tuple(measures), gauges)
    if isinstance(reference, str | os.PathLike):
        reference = load_design(reference)
    loop: dict[str, Any] = {"duration": duration, "settle_within": settle_within}
    if isinstance(reference, Design):
        own = reference.loop
        loop = {key: getattr(own, key) if value is None else value for key, value in loop.items()}
    loop = {key: value for key, value in loop.items() if value is not None}
    if gauges is not None:
        loop["strain_gauges"] = gauges
    table = {
        "name": name,
        "summary": "A controller that was made elsewhere",
        "source": "wrap_controller",
        "model": plant.arm.name,
        "method": "state-space",
        "basis": plant.basis.model_copy(update={"drop_above": None}),
        "reference": _reference(reference),
        "state_space": law.table(law.sample_time(period), feedforward),
        "loop": {
            "delay": delay,
            **{key: value for key, value in loop.items() if value is not None},
        },
    }
    return design_on(plant, build(Design, table, name))


def _reference(reference: Any) -> Any:
    """Return the reference as the value of a design's key."""
    motion, shaper, fed = reference, None, dict[str, Any]()
    if isinstance(reference, Design):
        file, shaper = reference.reference.file, reference.reference.shaper
        motion = reference.reference if file is None else make_reference(reference)
        fed = {"feed_forward": reference.reference.feeds} if file is not None else fed
    if not isinstance(motion, ReferenceMotion):
        return motion
    if motion.torque:
        raise InputError("reference: expected a motion, got torques")
    table = {"kind": "motion", "from": motion.start.tolist(), "to": motion.final.tolist()} | fed
    table |= {"motion": motion} | ({"shaper": shaper.table()} if shaper else {})
    return table | ({"duration": motion.duration} if motion.duration else {})


@dataclass(frozen=True, kw_only=True)
class _System:
    """A law as given by the user: matrices or a function, names of signals, its sampling period.

    `period` is 0 for a continuous law, None if unspecified, NaN for a law sampled at an unknown
    rate. `inputs` and `outputs` are None if they have no names. Messages begin with `label`.
    """

    label: str
    matrices: dict[str, Array] = field(default_factory=dict)
    function: ca.Function | None = None
    measures: tuple[str, ...] = ()
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    period: float | None = None

    def refuse(self, key: str, expected: str, got: object) -> InputError:
        """Return the error of an argument."""
        return InputError(f"{self.label}: {key}: expected {expected}, got {got}")

    def turned(self) -> _System:
        """Return the law of errors e from a law of measurements minus reference, -e."""
        if self.function is not None or self.inputs:
            expected = "'errors', as a system with names or a CasADi function says what it takes"
            raise self.refuse("inputs", expected, "'measurements'")
        turned = {key: -1.0 * M if key in "BD" else 1.0 * M for key, M in self.matrices.items()}
        return replace(self, matrices=turned)

    def matched(
        self, plant: Plant, measures: tuple[str, ...] | None, gauges: tuple[float, ...] | None
    ) -> _System:
        """Return the law with inputs as in `measures` and outputs in the order of the joints."""
        matrices, names = self.matrices, list(self.outputs or ())
        if self.inputs is not None:
            self._check_inputs(self.inputs, plant, measures, gauges)
        elif not measures:
            expected = "names of the signals that are measured, as the system names none"
            raise self.refuse("measures", expected, "none")
        if self.outputs is not None:
            expected = [f"tau_{joint}" for joint in plant.joints]
            if sorted(names) != sorted(expected):
                raise self.refuse("outputs of the system", ", ".join(expected), ", ".join(names))
            order = [names.index(entry) for entry in expected]
            matrices = {key: M[order] if key in "CD" else M for key, M in matrices.items()}
        return replace(self, measures=self.inputs or measures or (), matrices=matrices)

    def _check_inputs(
        self,
        inputs: tuple[str, ...],
        plant: Plant,
        measures: tuple[str, ...] | None,
        gauges: tuple[float, ...] | None,
    ) -> None:
        """Refuse named inputs that are no signals, or others than those of `measures`."""
        known = measurable(plant, gauges)
        for entry in inputs:
            if read_input(entry, known) is None:
                expected = f"signals of {plant.arm.name} ({nearest(entry, known)})"
                raise self.refuse("inputs of the system", expected, entry)
        own, given = _measured(inputs), _measured(inputs if measures is None else measures)
        if own != given:
            expected = f"those that the inputs of the system name ({', '.join(sorted(own))})"
            raise self.refuse("measures", expected, ", ".join(sorted(given)))

    def sample_time(self, given: float | None) -> float:
        """Return the sampling period [s] of the law, its own or the given one."""
        if self.period is None:
            return given or 0.0
        if np.isnan(self.period):
            if not given:
                expected = "the period [s], as the system is sampled and does not say it"
                raise self.refuse("sample_time", expected, given)
            return given
        if not len(self.matrices["A"]) and not self.period:
            return given or 0.0
        if given is not None and abs(given - self.period) > _SAME * self.period:
            hint = " (a continuous one: control.c2d makes it discrete)" if not self.period else ""
            expected = f"{self.period:g}, as the system has it{hint}"
            raise self.refuse("sample_time", expected, f"{given:g}")
        return self.period

    def table(self, period: float, feedforward: str | None) -> dict[str, Any]:
        """Return the law as the table [state_space] of a design."""
        table: dict[str, Any] = {"measures": self.measures, "sample_time": period}
        if feedforward is not None:
            table["feedforward"] = feedforward
        if self.function is not None:
            return table | {"function": self.function}
        states = len(self.matrices["A"])
        kept = self.matrices if states else {"D": self.matrices["D"]}
        return table | {key: M.tolist() for key, M in kept.items()}


def _measured(names: Sequence[str]) -> set[str]:
    """Signals that a law measures, of the names of its inputs."""
    signals = (plain_name(name).removeprefix("measured_") for name in names)
    return {signal for signal in signals if not signal.startswith("desired_")}


def _read_system(system: Any, label: str) -> _System:
    """Read matrices, names and sampling period of any accepted system."""
    if isinstance(system, tuple) and system:  # what a design function of python-control returns
        system = system[0]
    if isinstance(system, ca.Function):
        return _System(label=label, function=system)
    if isinstance(system, list | int | float) or hasattr(system, "__array__"):
        D = np.atleast_2d(checks.finite(f"{label}: system", system))
        if D.ndim != 2:
            raise InputError(f"{label}: system: expected a matrix of gains, got shape {D.shape}")
        m, p = D.shape
        parts = (np.zeros((0, 0)), np.zeros((0, p)), np.zeros((m, 0)), D)
        return _System(label=label, matrices=dict(zip("ABCD", parts, strict=True)))
    if hasattr(system, "num") and not hasattr(system, "A"):
        system = _realised(system, label)
    if not all(hasattr(system, key) for key in "ABCD"):
        raise InputError(f"{label}: system: expected {_KINDS}, got {type(system).__name__}")
    dt = getattr(system, "dt", None)  # True: sampled, at an unspecified rate
    return _System(
        label=label,
        matrices={
            key: checks.finite(f"{label}: system.{key}", getattr(system, key)) for key in "ABCD"
        },
        inputs=_names(getattr(system, "input_labels", None)),
        outputs=_names(getattr(system, "output_labels", None)),
        period=None if dt is None else np.nan if dt is True else float(dt),
    )


def _realised(system: Any, label: str) -> Any:
    """Return a transfer function as a state space; refuse an improper one."""
    import control

    try:
        return control.ss(system)
    except (ValueError, TypeError, NotImplementedError, ImportError) as error:
        words = " ".join(str(error).split())
        expected = "a proper transfer function"
        raise InputError(f"{label}: system: expected {expected}, got: {words}") from error


def _names(labels: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of signals; None if they are the default names of python-control."""
    if not labels or all(_DEFAULT_LABEL.fullmatch(label) for label in labels):
        return None
    return tuple(map(plain_name, labels))
