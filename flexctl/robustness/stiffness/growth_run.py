"""Growth or decay of one mode of a loop about rest, measured in a nonlinear run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flexctl.checks import Array
from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, close_loop, eigenvectors, linearise_loop
from flexctl.model import Reference
from flexctl.plant import StiffnessError, assemble_plant
from flexctl.robustness.stiffness.case import Case
from flexctl.robustness.stiffness.record import GrowthRun
from flexctl.simulation import Tolerance, simulate

_AMPLITUDE = 1e-5  # rad or m: its square is negligible
_EXPONENT = 1.0  # the mode grows or decays by at most e^1 in a run
_MOST_PERIODS = 400  # of the mode in a run
_LEAST_RATE = 1e-3  # 1/s: slower growth of other modes is negligible
_OTHERS_EXPONENT = 8.0  # the fastest growing mode grows by at most e^8
_TOLERANCE = Tolerance.of(1e-11)


def close_wrong(
    case: Case, stiffness: Mapping[str, float], joints: Array, *, second_loop: bool
) -> ClosedLoop:
    """Close a controller with a wrong stiffness around the true arm, held at joints (m,).

    `stiffness` are relative errors by name of the part, link or spring, or "alpha" of all.

    Raises
    ------
    InputError
        When the gains are scheduled along the path of the reference, which is replaced here.
    """
    design = case.design
    if design.fast_loop and design.fast_loop.schedule:
        raise InputError(f"{design.label}: expected gains that do not follow the path, got others")
    held = Reference.model_validate(
        {"kind": "setpoint", "from": tuple(joints), "to": tuple(joints)}
    )
    update: dict[str, object] = {"reference": held}
    if not second_loop:
        update["second_loop"] = None
    fixed = design.model_copy(update=update)
    parts = assemble_plant(
        case.designed_for, case.setup.design_basis, interpreted=True
    ).stiffness_parts
    error = StiffnessError(values=tuple(_error_of(part, stiffness) for part in parts))
    controller = design_controller(
        case.designed_for, fixed, case.setup.design_basis, stiffness_error=error
    )
    return close_loop(controller, case.setup.true_arm, case.truth.basis)


def _error_of(part: str, stiffness: Mapping[str, float]) -> float:
    """Relative error [-] of a part, of its link or of all parts; 0 where none is named."""
    for name in (part, part.split(".")[0], "alpha"):
        if name in stiffness:
            return float(stiffness[name])
    return 0.0


def run_along_mode(loop: ClosedLoop, value: complex) -> GrowthRun:
    """Start a loop that holds a pose in the mode whose eigenvalue is next to `value`, and run it.

    The amplitude of the mode is the product of its left eigenvector with the state, to which no
    other mode contributes.

    Raises
    ------
    InputError
        When the law has states, which this initial state does not include.
    RunError, ComputationError
        As `simulate`.
    """
    controller = loop.controller
    if controller.n_state:
        raise InputError(f"{controller.design.label}: expected a law without states, got one")
    joints = controller.reference.final
    linear = linearise_loop(loop, joints, float(controller.feedback is not None))
    values, W, V = eigenvectors(linear.A + linear.B @ linear.K)
    k = int(np.abs(values - value).argmin())
    n, eigenvalue = loop.truth.n, complex(values[k])
    shape = V[:, k] / np.abs(V[:n, k]).max()
    begun = _AMPLITUDE * shape.real
    fastest = max(float(values.real.max()), _LEAST_RATE)
    duration = min(
        _EXPONENT / abs(eigenvalue.real),
        _MOST_PERIODS * 2 * np.pi / max(abs(eigenvalue.imag), 1.0),
        _OTHERS_EXPONENT / fastest,
    )
    run = simulate(
        loop,
        times=np.array([0.0, duration]),
        duration=duration,
        start=(linear.plant.q0 + begun[:n], begun[n:]),
        tolerance=_TOLERANCE,
    )
    state = np.vstack([run.q - linear.plant.q0[:, None], run.v])
    amplitude = np.abs(W[:, k].conj() @ state)
    return GrowthRun(
        rate=float(np.log(amplitude[1] / amplitude[0])) / duration,
        eigenvalue=eigenvalue,
        duration=duration,
    )
