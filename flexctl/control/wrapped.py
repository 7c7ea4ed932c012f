"""External controllers as controllers of this library: `wrap_controller`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import casadi as ca
import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control.controller import Controller, design_on
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
from flexctl.plant import Plant, assemble_plant

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
    the order of `measures`; torques tau [N m or N] in the order of the joints. z starts at zero.

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
    plant = _assembled(plant)
    period = None if sample_time is None else checks.number("sample_time", sample_time)
    for key, values in (("measures", measures), ("strain_gauges", strain_gauges)):
        if values is not None:
            checks.kind(key, values, list, tuple, np.ndarray, hint="one entry each")
    law = _read_system(system, name)
    if inputs == "measurements":
        law = law.turned(name)
    elif inputs != "errors":
        raise InputError(f"inputs: expected 'errors' or 'measurements', got {inputs!r}")
    law = law.matched(plant, None if measures is None else tuple(measures), strain_gauges, name)
    if isinstance(reference, str | os.PathLike):
        reference = load_design(reference)
    table = {
        "name": name,
        "summary": "A controller that was made elsewhere",
        "source": "wrap_controller",
        "model": plant.arm.name,
        "method": "state-space",
        "basis": plant.basis.model_copy(update={"drop_above": None}),
        "reference": _reference(reference),
        "state_space": law.table(_period(law, period, name), feedforward),
        "loop": _run_settings(reference, duration, settle_within)
        | {"delay": delay}
        | ({"strain_gauges": tuple(strain_gauges)} if strain_gauges is not None else {}),
    }
    return design_on(plant, build(Design, table, name))


def _assembled(plant: Plant | Arm | str | os.PathLike[str]) -> Plant:
    if isinstance(plant, Plant):
        return plant
    return assemble_plant(plant if isinstance(plant, Arm) else load_model(plant), BasisChoice())


def _run_settings(
    reference: Any, duration: float | None, settle_within: float | None
) -> dict[str, float]:
    """Return the length of a run and its band [m]: as asked, else of the design of `reference`."""
    loop = reference.loop if isinstance(reference, Design) else None
    defaults = (loop.duration, loop.settle_within) if loop else (None, None)
    chosen = zip((duration, settle_within), defaults, strict=True)
    values = [default if value is None else value for value, default in chosen]
    named = zip(("duration", "settle_within"), values, strict=True)
    return {key: value for key, value in named if value is not None}


def _reference(reference: Any) -> Any:
    """Return the reference as the value of a design's key."""
    if isinstance(reference, Design):
        motion = reference.reference
        return _of_motion(make_reference(reference)) if motion.file is not None else motion
    return _of_motion(reference) if isinstance(reference, ReferenceMotion) else reference


def _of_motion(motion: ReferenceMotion) -> dict[str, Any]:
    if motion.torque:
        raise InputError("reference: expected a motion, got torques")
    table = {"kind": "motion", "from": motion.start.tolist(), "to": motion.final.tolist()}
    return table | {"motion": motion} | ({"duration": motion.duration} if motion.duration else {})


@dataclass(frozen=True, kw_only=True)
class _System:
    """A law as given by the user: matrices or a function, names of signals, its sampling period.

    `period` is 0 for a continuous law, None if unspecified, NaN for a law sampled at an unknown
    rate. `inputs` and `outputs` are None if they have no names.
    """

    matrices: dict[str, Array] = field(default_factory=dict)
    function: ca.Function | None = None
    measures: tuple[str, ...] = ()
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    period: float | None = None

    def turned(self, label: str) -> _System:
        """Return the law of errors e from a law of measurements minus reference, -e."""
        if self.function is not None or self.inputs:
            expected = "'errors', as a system with names or a CasADi function says what it takes"
            raise InputError(f"{label}: inputs: expected {expected}, got 'measurements'")
        signs = {"B": -1.0, "D": -1.0}
        turned = {key: signs.get(key, 1.0) * M for key, M in self.matrices.items()}
        return _System(**{**vars(self), "matrices": turned})

    def matched(
        self,
        plant: Plant,
        measures: tuple[str, ...] | None,
        gauges: Sequence[float] | None,
        label: str,
    ) -> _System:
        """Return the law with inputs as in `measures` and outputs in the order of the joints."""
        fields = {**vars(self), "measures": self._measures(plant, measures, gauges, label)}
        if self.outputs is not None:
            order = self._order(plant, label)
            fields["matrices"] = {
                key: M[order] if key in "CD" else M for key, M in self.matrices.items()
            }
        return _System(**fields)

    def _measures(
        self,
        plant: Plant,
        measures: tuple[str, ...] | None,
        gauges: Sequence[float] | None,
        label: str,
    ) -> tuple[str, ...]:
        if self.inputs is None:
            if not measures:
                expected = "names of the signals that are measured, as the system names none"
                raise InputError(f"{label}: measures: expected {expected}, got none")
            return measures
        known = measurable(plant, None if gauges is None else tuple(gauges))
        for entry in self.inputs:
            if read_input(entry, known) is None:
                expected = f"signals of {plant.arm.name} ({nearest(entry, known)})"
                raise InputError(f"{label}: inputs of the system: expected {expected}, got {entry}")
        if measures is not None:
            bare = {entry.removeprefix("measured_") for entry in self.inputs}
            bare = {entry for entry in bare if not entry.startswith("desired_")}
            entries = {plain_name(entry).removeprefix("measured_") for entry in measures}
            entries = {entry for entry in entries if not entry.startswith("desired_")}
            if bare != entries:
                expected = f"those that the inputs of the system name ({', '.join(sorted(bare))})"
                got = ", ".join(sorted(entries))
                raise InputError(f"{label}: measures: expected {expected}, got {got}")
        return self.inputs

    def _order(self, plant: Plant, label: str) -> list[int]:
        """Rows of the outputs in the order of the joints."""
        names, expected = list(self.outputs or ()), [f"tau_{joint}" for joint in plant.joints]
        if sorted(names) != sorted(expected):
            raise InputError(
                f"{label}: outputs of the system: expected {', '.join(expected)}, got "
                f"{', '.join(names)}"
            )
        return [names.index(entry) for entry in expected]

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


def _read_system(system: Any, label: str) -> _System:
    """Read matrices, names and sampling period of any accepted system."""
    if isinstance(system, tuple) and system:  # what a design function of python-control returns
        system = system[0]
    if isinstance(system, ca.Function):
        return _System(function=system)
    if isinstance(system, list | int | float) or hasattr(system, "__array__"):
        D = checks.finite(f"{label}: system", system)
        D = np.atleast_2d(D)
        if D.ndim != 2:
            raise InputError(f"{label}: system: expected a matrix of gains, got shape {D.shape}")
        m, p = D.shape
        return _System(matrices=_matrices(np.zeros((0, 0)), np.zeros((0, p)), np.zeros((m, 0)), D))
    if hasattr(system, "num") and not hasattr(system, "A"):
        system = _realised(system, label)
    if not all(hasattr(system, key) for key in "ABCD"):
        raise InputError(f"{label}: system: expected {_KINDS}, got {type(system).__name__}")
    parts = [checks.finite(f"{label}: system.{key}", getattr(system, key)) for key in "ABCD"]
    return _System(
        matrices=_matrices(*parts),
        inputs=_names(getattr(system, "input_labels", None)),
        outputs=_names(getattr(system, "output_labels", None)),
        period=_dt(getattr(system, "dt", None)),
    )


def _matrices(A: Array, B: Array, C: Array, D: Array) -> dict[str, Array]:
    return {"A": A, "B": B, "C": C, "D": D}


def _realised(system: Any, label: str) -> Any:
    """Return a transfer function as a state space; refuse an improper one."""
    import control

    try:
        return control.ss(system)
    except (ValueError, TypeError, NotImplementedError, ImportError) as error:
        words = " ".join(str(error).split())
        expected = "a proper transfer function"
        raise InputError(f"{label}: system: expected {expected}, got: {words[:100]}") from error


def _names(labels: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names of signals; None if they are the default names of python-control."""
    if not labels or all(_DEFAULT_LABEL.fullmatch(label) for label in labels):
        return None
    return tuple(map(plain_name, labels))


def _dt(dt: Any) -> float | None:
    """Read a sampling period [s] of python-control, where True is an unspecified one."""
    return None if dt is None else np.nan if dt is True else float(dt)


def _period(law: _System, sample_time: float | None, label: str) -> float:
    """Return the sampling period [s] of a law, its own or the given one."""
    if law.period is None:
        return sample_time or 0.0
    if np.isnan(law.period):
        if not sample_time:
            expected = "the period [s], as the system is sampled and does not say it"
            raise InputError(f"{label}: sample_time: expected {expected}, got {sample_time}")
        return sample_time
    static = not len(law.matrices["A"]) and not law.period
    if sample_time is None or static:
        return (sample_time or 0.0) if static else law.period
    if abs(sample_time - law.period) > _SAME * law.period:
        hint = " (a continuous one: control.c2d makes it discrete)" if not law.period else ""
        expected = f"{law.period:g}, as the system has it{hint}"
        raise InputError(f"{label}: sample_time: expected {expected}, got {sample_time:g}")
    return law.period
