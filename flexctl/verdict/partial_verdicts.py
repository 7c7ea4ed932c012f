"""Some metrics of a loop, for searches that need no whole verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flexctl.loop import ClosedLoop, LinearPoses, linear_poses
from flexctl.robustness import judge_stiffness
from flexctl.simulation import Trajectory
from flexctl.verdict.evaluation import Evaluation
from flexctl.verdict.friction import judge_friction
from flexctl.verdict.margins import stability_margins
from flexctl.verdict.margins_at_sensors import sensor_margins, why_no_readings
from flexctl.verdict.named_metrics import SENSORS, Metric, metrics
from flexctl.verdict.neglected_modes import neglected_at_rest
from flexctl.verdict.performance import find_no_rest, judge_effort, judge_residual, judge_tracking
from flexctl.verdict.sampling_rate import sampling_rate_of
from flexctl.verdict.stability import judge_stability
from flexctl.verdict.stationary_noise import noise_levels

OF_RUNS = ("tracking.", "residual.", "effort.")
"""How names of metrics of a run begin."""
_RATE = "margins.min_sampling_rate"


def run_metrics(run: Trajectory, loop: ClosedLoop) -> dict[str, Metric]:
    """Metrics of a run by name: tracking, residual and effort."""
    controller = loop.controller
    judged = _only(
        loop,
        tracking=judge_tracking(run, controller),
        residual=None if find_no_rest(controller) else judge_residual(run, controller),
        effort=judge_effort(run, loop.truth if loop.controller.sample_time else None),
    )
    return {key: value for key, value in metrics(judged).items() if key.startswith(OF_RUNS)}


def linear_poses_metrics(loop: ClosedLoop, keys: Sequence[str]) -> dict[str, Metric]:
    """Metrics of the linear loop among `keys`, at its final equilibrium and along the motion.

    Margins are those of a stable loop. Raises ComputationError where one cannot be computed.
    """
    found = metrics(linear_poses_verdict(loop, keys))
    return {key: found[key] for key in keys}


def linear_poses_verdict(loop: ClosedLoop, keys: Sequence[str]) -> Evaluation:
    """Return the parts of a verdict of which `linear_poses_metrics` has the metrics `keys`."""
    poses = linear_poses(loop)
    parts: dict[str, Any] = {"stability": judge_stability(loop, poses, ())}
    if parts["stability"].stable is True:
        parts |= _margins(loop, poses, keys)
        if any(key.startswith("friction.") for key in keys):
            parts["friction"] = judge_friction(loop, poses.final)
        if any(key.startswith("noise.") for key in keys):
            parts["noise"] = noise_levels(loop, poses.final)
        if any(key.startswith("neglected.") for key in keys):
            parts["neglected"] = neglected_at_rest(loop, poses.final)
    if any(key.startswith("stiffness.") for key in keys):
        parts["stiffness"] = judge_stiffness(loop, poses)
    return _only(loop, **parts)


def _margins(loop: ClosedLoop, poses: LinearPoses, keys: Sequence[str]) -> dict[str, Any]:
    parts = dict[str, Any]()
    if _RATE in keys:
        parts["min_sampling_rate"] = sampling_rate_of(loop, poses.final).rate
    at_sensors = any(key.startswith(SENSORS) for key in keys)
    own = [key for key in keys if key.startswith("margins.") and not key.startswith(SENSORS)]
    if set(own) - {_RATE}:
        parts["margins"] = stability_margins(poses.final)
    if at_sensors and not why_no_readings(poses.final):
        parts["sensor_margins"] = sensor_margins(poses.final, parts.get("margins"))
    return parts


def _only(loop: ClosedLoop, **parts: Any) -> Evaluation:
    """Verdict with some of its parts."""
    controller = loop.controller
    return Evaluation(
        name=controller.design.name,
        method=controller.design.method,
        basis=controller.plant.basis,
        truth=loop.truth.basis,
        cost={},
        assumptions=(),
        **parts,
    )
