"""Loops and what they are made of, linear models and runs as plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.control import Controller, gains_used
from flexctl.loop import ClosedLoop, LinearLoop, damping_ratios
from flexctl.model import Arm, Design, command_units
from flexctl.plant import LinearPlant, Plant
from flexctl.records import plain
from flexctl.simulation import Trajectory
from flexctl.verdict import judge_positions
from flexctl.view.json import attributes

N_SAMPLES = 11  # of a run, unless times are given
SAME = 2e-12  # of a run, which rounds its times to events that differ from them by round-off


def file_json(record: Arm | Design) -> dict[str, Any]:
    """Write what the file of an arm or a design says, after its name; defaults are left out.

    A reference motion and a law in memory are functions and are left out, too.
    """
    table = {"name": record.name, **record.table()}
    if isinstance(record, Design):
        for key, name in (("reference", "motion"), ("state_space", "function")):
            if name in table.get(key, {}):
                table[key] = {k: v for k, v in table[key].items() if k != name}
    return plain(table)


def plant_json(plant: Plant) -> dict[str, Any]:
    """Write the names of a plant; its equations are functions."""
    return plain(
        {
            "model": plant.arm.name,
            "basis": plant.basis.described(),
            "coordinates": plant.coordinates,
            "actuators": plant.joints,
            "lines": plant.lines,
            "parameters": dict(zip(plant.parameters, plant.numbers, strict=True)),
            **attributes(plant, "engine backend"),
        }
    )


def controller_json(controller: Controller) -> dict[str, Any]:
    """Write what a controller measures, how it is timed and with which gains; not its law."""
    design = controller.design
    return plain(
        {
            "design": design.name,
            "model": controller.plant.arm.name,
            "method": design.method,
            "basis": controller.plant.basis.described(),
            **_law(controller),
        }
    )


def loop_json(loop: ClosedLoop) -> dict[str, Any]:
    """Write which controller acts on which truth plant."""
    names = {"coordinates": loop.truth.coordinates, "assumptions": loop.assumptions}
    return plain({**loop_head(loop), **_law(loop.controller), **names})


def _law(controller: Controller) -> dict[str, Any]:
    return {
        "actuators": controller.plant.joints,
        "command_units": command_units(controller.plant.arm),
        **attributes(controller, "measured n_state sample_time delay duration torque_limit"),
        **_instruments(controller),
        "gains": gains_used(controller),
        "assumptions": controller.assumptions,
    }


def _instruments(controller: Controller) -> dict[str, Any]:
    """Write the readings of a law that has instruments, and the seed of their noise."""
    if controller.fitted is None:
        return {}
    names = "name kind place xi late every deviation resolution density"
    differences = [attributes(one, "place time_constant") for one in controller.fitted.differences]
    return {
        "instruments": [attributes(one, names) for one in controller.fitted.readings],
        "differences": differences,
        "seed": controller.design.loop.seed,
    }


def loop_head(loop: ClosedLoop) -> dict[str, Any]:
    """Describe which loop is meant: model, design and both discretisations."""
    counted = {"coordinates": loop.truth.n, "settings": [], "backend": loop.truth.backend}
    return {
        "model": loop.truth.arm.name,
        "design": loop.controller.design.name,
        "method": loop.controller.design.method,
        "basis": loop.controller.plant.basis.described(),
        "truth": loop.truth.basis.described() | counted,
    }


def linear_plant_json(plant: LinearPlant) -> dict[str, Any]:
    """Write M, D, K and B about an equilibrium, poles, and the state space with its names."""
    return plain(
        {
            **attributes(plant, "coordinates actuators q0 tau0 M D K B"),
            "poles": _poles(plant.poles()),
            "state_space": _state_space(plant.to_control()),
        }
    )


def linear_loop_json(loop: LinearLoop) -> dict[str, Any]:
    """Write poles of a linear closed loop, its feedback, and the state space with its names.

    A law that is not the same at every sample has no state space from one sample to the next.
    """
    return plain(
        {
            **attributes(loop.plant, "coordinates actuators"),
            **attributes(loop, "sample_time delay K"),
            "poles": _poles(loop.poles),
            "state_space": None if loop.samples else _state_space(loop.to_control()),
        }
    )


def _poles(poles: ComplexArray) -> dict[str, Any]:
    """Write poles by keys of eigenvalue loci, the slowest first."""
    ordered = poles[abs(poles).argsort(kind="stable")]
    return {
        "re": ordered.real,
        "im": ordered.imag,
        "frequency": abs(ordered),
        "damping": damping_ratios(ordered),
    }


def _state_space(system: Any) -> dict[str, Any]:
    """Write a `control.StateSpace`; `dt` is 0 where it is continuous."""
    return {
        "inputs": system.input_labels,
        "states": system.state_labels,
        "outputs": system.output_labels,
        **attributes(system, "A B C D dt"),
    }


def simulation_json(loop: ClosedLoop, run: Trajectory, times: Array) -> dict[str, Any]:
    """Describe a loop and its run under the keys of the contract; `times` (k,) [s] as below.

    With the drift of what follows a prescribed motion, (m,) [rad or m].
    """
    answer = {**loop_head(loop), **trajectory_json(run, times)}
    answer["position_excess"] = plain(judge_positions(run, loop.truth.arm).excess)
    if loop.prescribed:
        drift = np.abs(run.q[list(run.drives)] - run.desired).max(axis=1)
        answer["drift"] = plain(drift)
    return answer


def trajectory_json(run: Trajectory, times: Array | None = None) -> dict[str, Any]:
    """Describe a run; samples at `times` (k,) [s], which are among the run's, else at 11."""
    if times is None:
        kept = np.unique(np.linspace(0, len(run.t) - 1, N_SAMPLES).round().astype(int))
    else:
        kept = np.searchsorted(run.t, times - SAME * run.t[-1])
    return plain(
        {
            "duration": run.t[-1],
            "samples": [_sample(run, int(k)) for k in kept],
            "energy": _energy(run),
            **attributes(run, "steps rejected evaluations wall_seconds"),
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
        "torque": run.torque[:, k],
    }


def _energy(run: Trajectory) -> dict[str, float]:
    """Sum up the energy [J]: gained, supplied and lost at the end, worst residual of the run."""
    account = run.energy
    stored = attributes(account, "kinetic strain potential")
    residual = float(np.abs(account.residual).max())
    return {
        **{name: float(values[-1] - values[0]) for name, values in stored.items()},
        "supplied": float(account.supplied[-1]),
        "dissipated": float(account.dissipated[-1]),
        "residual": residual,
        "residual_relative": residual / account.scale if account.scale else 0.0,
    }
