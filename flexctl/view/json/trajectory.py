"""JSON of a run: samples, energy account, cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop
from flexctl.records import plain
from flexctl.simulation import Trajectory

N_SAMPLES = 11  # unless times are given


def simulation_json(loop: ClosedLoop, run: Trajectory, times: Array) -> dict[str, Any]:
    """Describe a loop and its run under the keys of the contract; `times` (k,) [s] as below."""
    return {**loop_head(loop), **trajectory_json(run, times)}


def loop_head(loop: ClosedLoop) -> dict[str, Any]:
    """Describe which loop is meant: model, design and both discretisations."""
    truth: dict[str, Any] = loop.truth.basis.described()
    truth["coordinates"] = loop.truth.n
    truth["settings"] = []
    truth["backend"] = loop.truth.backend
    return {
        "model": loop.truth.arm.name,
        "design": loop.controller.design.name,
        "method": loop.controller.design.method,
        "basis": loop.controller.plant.basis.described(),
        "truth": truth,
    }


def trajectory_json(run: Trajectory, times: Array | None = None) -> dict[str, Any]:
    """Describe a run; samples at `times` (k,) [s], which are among the run's, else at 11."""
    if times is None:
        kept = np.unique(np.linspace(0, len(run.t) - 1, N_SAMPLES).round().astype(int))
    else:
        kept = np.searchsorted(run.t, times)
    return plain(
        {
            "duration": run.t[-1],
            "samples": [_sample(run, int(k)) for k in kept],
            "energy": _energy(run),
            "steps": run.steps,
            "rejected": run.rejected,
            "evaluations": run.evaluations,
            "wall_seconds": run.wall_seconds,
            "saturated_seconds": run.saturated,
            "integrator": run.integrator,
            "assumptions": run.assumptions,
        }
    )


def _sample(run: Trajectory, k: int) -> dict[str, Any]:
    m = len(run.joints)
    link_tip: dict[str, dict[str, float]] = {}
    for line, deflection in run.deflection.items():
        link, plane = line.rsplit(".", 1)
        link_tip.setdefault(link, {})[plane] = deflection[k]
    return {
        "t": run.t[k],
        "joint": run.q[:m, k],
        "joint_rate": run.v[:m, k],
        "rotor": run.q[list(run.rotors.values()), k],
        "link_tip": link_tip,
        "tip": run.tip[:, k],
        "tip_error": run.tip_error[k] if run.tracks else None,
        "tau": run.tau[:, k],
    }


def _energy(run: Trajectory) -> dict[str, float]:
    """Sum up the energy [J]: gained, supplied and lost at the end, worst residual of the run."""
    account = run.energy
    residual = float(np.abs(account.residual).max())
    stored = {
        "kinetic": account.kinetic,
        "strain": account.strain,
        "potential": account.potential,
    }
    return {
        **{name: float(values[-1] - values[0]) for name, values in stored.items()},
        "supplied": float(account.supplied[-1]),
        "dissipated": float(account.dissipated[-1]),
        "residual": residual,
        "residual_relative": residual / account.scale if account.scale else 0.0,
    }
