"""``flexctl simulate``: one run of one design, sampled, with its energy account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType

from flexctl import __version__, checks
from flexctl.checks import Array
from flexctl.control import design_controller, gains_used
from flexctl.errors import FlexctlError, InputError
from flexctl.loop import ClosedLoop, close_loop
from flexctl.model import Arm, command_units
from flexctl.simulation import Tolerance, Trajectory, check_integration, simulate
from flexctl.view.json.loop import N_SAMPLES, SAME, simulation_json
from flexctl.view.options import SimulateOptions
from flexctl.view.output import (
    Result,
    check_target,
    check_targets,
    kept_in,
    literal,
    notes,
    number,
    plain_table,
    progress,
    replacing,
)
from flexctl.view.provenance import as_text, integration, provenance
from flexctl.view.request import (
    design_basis,
    load_arm,
    load_gain_set,
    read_numbers,
    true_arm,
    truth_basis,
    truth_settings,
)
from flexctl.view.signals import (
    joint_units,
    line_units,
    to_dataset,
    wind_up,
    write_csv,
    write_netcdf,
)
from flexctl.view.words.numbers import basis_words, limit_name
from flexctl.view.words.verdict import excess_words

N_KEPT = 1001  # times of a run that are kept for files and figures
_SMALL = {"rad": "mrad", "m": "mm"}
LEAST_TOLERANCE, MOST_TOLERANCE = 1e-13, 1e-2  # round-off; nothing of a motion is right beyond


def simulate_design(options: SimulateOptions, model: str, design: str) -> Result:
    """Find what `flexctl simulate` prints."""
    check_targets(options, ".nc", ".csv")
    check_target("--animate", options.animate, (".gif", ".mp4"))
    if options.animate:
        from flexctl.view.figures.animation import check_film

        check_film(options.animate)
    samples = read_numbers("--at", ",".join(options.at))
    tolerance = _integration(options)
    loop = _close(options, model, design)
    times, printed = run_times(loop.duration, samples, options.duration)
    with progress() as say:
        say(f"simulating {design} on {model}")
        run = simulate(
            loop,
            times=times,
            duration=float(times[-1]),
            tolerance=tolerance,
            integrator=options.integrator,
            step=options.step,
        )
        unwritten: list[FlexctlError] = []
        if options.animate:
            say("drawing the film")
            with kept_in(unwritten):
                _animate(loop, run, options.animate)
    arm = loop.truth.arm
    answer = simulation_json(loop, run, printed)
    answer["truth"]["settings"] = truth_settings(options)
    made = provenance(
        model,
        [loop.controller.design],
        gains=lambda: {answer["design"]: gains_used(loop.controller)},
        tolerances=integration(tolerance, options.integrator, options.step),
    )
    facts = {"model": arm.name, "design": answer["design"], "flexctl": __version__}
    sprung = list(wind_up(run))

    def figure() -> Any:
        from flexctl.view.figures.pages import plot_simulation

        return plot_simulation(loop, run)

    return Result(
        answer=answer,
        table=lambda: _table(answer, arm, sprung),
        figure=figure,
        writers={
            ".nc": lambda path: write_netcdf(
                path, to_dataset(run, arm, {**facts, "provenance": as_text(made)})
            ),
            ".csv": lambda path: write_csv(path, run),
        },
        provenance=made,
        unwritten=unwritten,
    )


def _integration(options: SimulateOptions) -> Tolerance | None:
    """Check how a run shall be integrated, and return its tolerance; None for the default."""
    given = options.tolerance is not None
    check_integration(options.integrator, options.step, tolerance=given, prefix="--")
    if options.tolerance is None:
        return None
    if not LEAST_TOLERANCE <= options.tolerance <= MOST_TOLERANCE:
        raise InputError(
            f"--tolerance: expected a number in {LEAST_TOLERANCE:g} .. {MOST_TOLERANCE:g}, "
            f"got {options.tolerance:g}"
        )
    return Tolerance.of(options.tolerance)


def run_times(
    planned: float, samples: Sequence[float], duration: float | None
) -> tuple[Array, Array]:
    """Return times to keep, ascending, and those of them to print, both [s].

    InputError where the duration is not above 0, or a sample lies before 0 or after the end.
    """
    end = planned if duration is None else checks.positive("--duration", duration)
    printed = np.array(samples) if samples else np.linspace(0, end, N_SAMPLES)
    if printed.min() < 0 or (duration is not None and printed.max() > end):
        last = "" if duration is None else f" ({duration:g} s)"
        raise InputError(
            f"--at: expected times from 0 to the end of the run{last}, "
            f"got {printed.min() if printed.min() < 0 else printed.max():g}"
        )
    end = max(end, float(printed.max()))
    kept = np.union1d(np.linspace(0, end, N_KEPT), printed)
    return kept[np.append(np.diff(kept) > SAME * end, True)], printed


def _close(options: SimulateOptions, model: str, design: str) -> ClosedLoop:
    arm = load_arm(model, options)
    gains = load_gain_set(design, arm)
    basis = design_basis(options) or gains.basis
    as_it_is = true_arm(arm, options)
    controller = design_controller(arm, gains, basis)
    return close_loop(controller, as_it_is, truth_basis(as_it_is, basis, options))


def _animate(loop: ClosedLoop, run: Trajectory, path: Path) -> None:
    from flexctl.view.figures.animation import write_animation

    with replacing(path) as draft:
        write_animation(draft, loop, run)


def _table(answer: Mapping[str, Any], arm: Arm, sprung: Sequence[str]) -> RenderableType:
    title = (
        f"{answer['design']} on {answer['model']} "
        f"(truth: {basis_words(answer['truth'])} per link and plane)"
    )
    rows = [_row(sample, sprung) for sample in answer["samples"]]
    table = plain_table(title, *_headings(answer, arm, sprung), rows=rows, numeric=range(99))
    energy = answer["energy"]
    account = (
        f"energy: supplied {energy['supplied']:.4g} J, dissipated {energy['dissipated']:.4g} J, "
        f"account off by {energy['residual']:.2g} J ({energy['residual_relative']:.1g} of the "
        "largest)"
    )
    drift = _drift(answer["drift"], joint_units(arm)) if "drift" in answer else ""
    cost = f"{answer['steps']} steps in {answer['wall_seconds']:.2g} s, {answer['integrator']}"
    said = notes(answer["assumptions"])
    return Group(
        table,
        literal(account + drift),
        literal(cost),
        *_saturation(answer, command_units(arm)),
        *_excess(answer, arm),
        *said,
    )


def _drift(drift: Sequence[float], units: Sequence[str]) -> str:
    """Say how far a run deviates from its prescribed motion."""
    errors = zip(drift, units, strict=True)
    return "; off the motion by " + ", ".join(f"{error:.1g} {unit}" for error, unit in errors)


def _row(sample: Mapping[str, Any], sprung: Sequence[str]) -> list[str]:
    """Write a sample in SI units, what is small in thousandths; of springs the wind-up."""
    error, joint = sample["tip_error"], sample["joint"]
    joints = [int(name.removeprefix("joint")) - 1 for name in sprung]
    wound = [rotor - joint[j] for rotor, j in zip(sample["rotor"], joints, strict=True)]
    tips = [1e3 * w for planes in sample["link_tip"].values() for w in planes.values()]
    return [
        f"{sample['t']:g}",
        "-" if error is None else number(1e3 * error, 3),
        *map(number, joint),
        *(number(1e3 * value, 3) for value in wound),
        *(number(value, 3) for value in (*tips, *sample["tau"])),
    ]


def _headings(answer: Mapping[str, Any], arm: Arm, sprung: Sequence[str]) -> list[str]:
    """Return the heads of the columns, name above unit."""
    joints, angles = arm.joints, joint_units(arm)
    unit_of = dict(zip(joints, angles, strict=True))
    tips = answer["samples"][0]["link_tip"]
    names = [f"{link}.{plane}" for link, planes in tips.items() for plane in planes]
    lines = [f"{name}\n[m{unit}]" for name, unit in zip(names, line_units(names), strict=True)]
    return [
        "t\n[s]",
        "tip error from\nrigid arm [mm]",
        *(f"{name}\n[{unit}]" for name, unit in zip(joints, angles, strict=True)),
        *(f"{name} wind-up\n[{_SMALL[unit_of[name]]}]" for name in sprung),
        *lines,
        *(f"{name}\n[{unit}]" for name, unit in zip(joints, command_units(arm), strict=True)),
    ]


def _excess(answer: Mapping[str, Any], arm: Arm) -> list[str]:
    sliding = [j for j, link in enumerate(arm.links) if link.joint == "prismatic"]
    said = excess_words(answer["position_excess"], sliding)
    return [f"the run {said}"] if said else []


def _saturation(answer: Mapping[str, Any], units: Sequence[str]) -> list[str]:
    return [
        f"joint{j + 1} is at its {limit_name(units[j])} for {seconds:.3g} s"
        for j, seconds in enumerate(answer["saturated_seconds"])
        if seconds > 0
    ]
