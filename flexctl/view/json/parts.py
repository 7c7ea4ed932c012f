"""What a loop is made of as plain numbers: arms, designs, plants, controllers, linear models."""

from __future__ import annotations

from typing import Any

from flexctl.checks import ComplexArray
from flexctl.control import Controller, gains_used
from flexctl.loop import ClosedLoop, LinearLoop, damping_ratios
from flexctl.model import Arm, Design
from flexctl.plant import LinearPlant, Plant
from flexctl.records import plain
from flexctl.view.json.trajectory import loop_head


def file_json(record: Arm | Design) -> dict[str, Any]:
    """Write what the file of an arm or a design says, after its name; defaults are left out.

    A reference motion in memory is a function and is left out, too.
    """
    table = {"name": record.name, **record.table()}
    if isinstance(record, Design) and record.reference.motion is not None:
        table["reference"] = {k: v for k, v in table["reference"].items() if k != "motion"}
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
            "parameters": dict(zip(plant.parameters, plant.values, strict=True)),
            "engine": plant.engine,
            "backend": plant.backend,
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
        "measured": controller.measured,
        "n_state": controller.n_state,
        "sample_time": controller.sample_time,
        "delay": controller.delay,
        "duration": controller.duration,
        "torque_limit": controller.torque_limit,
        "gains": gains_used(controller),
        "assumptions": controller.assumptions,
    }


def linear_plant_json(plant: LinearPlant) -> dict[str, Any]:
    """Write M, D, K and B about an equilibrium, poles, and the state space with its names."""
    return plain(
        {
            "coordinates": plant.coordinates,
            "actuators": plant.actuators,
            "q0": plant.q0,
            "tau0": plant.tau0,
            "M": plant.M,
            "D": plant.D,
            "K": plant.K,
            "B": plant.B,
            "poles": _poles(plant.poles()),
            "state_space": _state_space(plant.to_control()),
        }
    )


def linear_loop_json(loop: LinearLoop) -> dict[str, Any]:
    """Write poles of a linear closed loop, its feedback, and the state space with its names."""
    return plain(
        {
            "coordinates": loop.plant.coordinates,
            "actuators": loop.plant.actuators,
            "sample_time": loop.sample_time,
            "delay": loop.delay,
            "K": loop.K,
            "poles": _poles(loop.poles),
            "state_space": _state_space(loop.to_control()),
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
        "A": system.A,
        "B": system.B,
        "C": system.C,
        "D": system.D,
        "dt": system.dt,
    }
