"""The arm of [SM02] as its claims need it: variants, linear models, open-loop runs."""

from __future__ import annotations

from functools import cache

import numpy as np

from flexctl.checks import Array
from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import LinearPlant, linearise
from flexctl.plant.plant import Plant, assemble_plant
from flexctl.simulation.simulation import simulate
from flexctl.simulation.trajectory import Trajectory

FLEXIBLE, RIGID = "subudhi-morris-2r", "subudhi-morris-2r-rigid-joints"
TWO_MODES = BasisChoice(order=2)  # per link, as the paper
TORQUE_END = 1.0  # s: the bang-bang torques are over
N_SAMPLES = 2001


@cache
def arm(*settings: str, rigid_joints: bool = False) -> Arm:
    """Load the paper's arm, with flexible or rigid joints, changed by settings (`KEY=VALUE`)."""
    return apply_settings(load_model(RIGID if rigid_joints else FLEXIBLE), settings)


@cache
def plant(*settings: str, rigid_joints: bool = False) -> Plant:
    """Discretise the paper's arm with two modes per link."""
    found = arm(*settings, rigid_joints=rigid_joints)
    return assemble_plant(found, TWO_MODES, interpreted=True)


@cache
def linear(*settings: str, rigid_joints: bool = False, elbow: float = 0.0) -> LinearPlant:
    """Linearise it at rest with theta_2 = `elbow` [rad]."""
    return linearise(plant(*settings, rigid_joints=rigid_joints), {"joint2": elbow})


def free_frequencies(model: LinearPlant) -> Array:
    """Natural frequencies [rad/s], ascending, with all free; two rigid motions left out."""
    return model.frequencies()[2:]


@cache
def bang_bang(
    stiffness: float | None,
    damping: float,
    *settings: str,
    duration: float = 3.0,
    integrator: str = "explicit",
    step: float | None = None,
) -> Trajectory:
    """Simulate +0.2 N m, then -0.2 N m on both joints, 0.5 s each.

    Parameters
    ----------
    stiffness
        k_s of both joints [N m/rad]; None for rigid joints.
    damping
        Damping ratio of all modes of the links [-].
    settings
        Further changes of the arm.
    duration
        Of the run [s].
    integrator, step
        As in `simulate`.
    """
    springs = [] if stiffness is None else [f"links.flexible_joint.stiffness={stiffness:.17g}"]
    changed = arm(
        f"links.damping_ratio={damping:g}", *springs, *settings, rigid_joints=stiffness is None
    )
    design = load_design("subudhi-morris-bang-bang")
    controller = design_controller(changed, design, TWO_MODES)
    times = np.linspace(0, duration, N_SAMPLES)
    loop = close_around(controller, controller.plant)
    return simulate(loop, times=times, integrator=integrator, step=step)


def modal(run: Trajectory) -> Array:
    """Modal coordinates (4, N) [m] of a run: q11, q12, q21, q22."""
    return run.q[-4:]


def tips(run: Trajectory) -> Array:
    """Tip deflections of both links (2, N) [m]."""
    return np.array([run.deflection["link1.y"], run.deflection["link2.y"]])


def peaks(signals: Array) -> Array:
    """Largest magnitude of every row (k, N)."""
    return np.abs(signals).max(axis=1)


def decay_rate(run: Trajectory, window: float = 1.0) -> float:
    """Rate [1/s] at which both tip deflections decay once the torques have ended.

    Slope of the logarithm of their rms over one window [s] after another; a beat of modes makes
    it uncertain by about 0.01 1/s over 10 s.
    """
    count = round((float(run.t[-1]) - TORQUE_END) / window)
    starts = TORQUE_END + window * np.arange(count)
    squares = (tips(run) ** 2).sum(axis=0)
    rms = [np.sqrt(squares[(run.t >= a) & (run.t < a + window)].mean()) for a in starts]
    return float(-np.polyfit(starts, np.log(rms), deg=1)[0])


def ripple(signals: Array, t: Array) -> Array:
    """Rms of every row (k, N) about a straight line, once the torques have ended."""
    rest = t >= TORQUE_END
    fits = np.polyfit(t[rest], signals[:, rest].T, deg=1)
    lines = np.outer(fits[0], t[rest]) + fits[1][:, None]
    return np.sqrt(((signals[:, rest] - lines) ** 2).mean(axis=1))
