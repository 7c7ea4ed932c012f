"""Comparison of several gain sets on one truth plant, with a ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from flexctl import checks
from flexctl.control import (
    Controller,
    ReferenceMotion,
    collocated_instruments,
    design_controller,
    design_on,
    gains_used,
    make_reference,
)
from flexctl.errors import DesignError, InputError
from flexctl.loop import LADDER, ClosedLoop, Setup, close_around, finest_basis
from flexctl.model import Arm, BasisChoice, Design, check_design, load_design, load_model
from flexctl.parallel import in_parallel, on_one_thread
from flexctl.plant import Plant, assemble_plant, linearise
from flexctl.records import Summary
from flexctl.simulation import compile_verdict
from flexctl.verdict.evaluation import Evaluation, evaluate, no_controller, require_motion
from flexctl.verdict.reasons import unstable_orders

BASELINE = "joint-pd"
_MOTION_SAMPLES = 201  # at which motions are compared

_Key = TypeVar("_Key")


@dataclass(frozen=True, kw_only=True, repr=False)
class Comparison(Summary):
    """Verdicts on several designs.

    Attributes
    ----------
    model, true_arm
        Name of the arm as the designs know it, and the arm as it is.
    truth, backend
        Discretisation of the truth plant, and how its functions are evaluated.
    evaluations
        One per design, in the order given; the baseline last.
    ranking
        Names of the designs that neither failed nor are unstable, best first.
    motions
        Names of designs by motion; designs of different motions are not comparable.
    run_lengths
        Length of runs [s] and names of the designs whose run lasts so long, the shortest first.

    Examples
    --------
    >>> import flexctl
    >>> comparison = flexctl.compare("single-link-hub", ["hub-pd"], baseline=False)
    >>> comparison.winner, comparison.truth.kind
    ('hub-pd', 'elements')
    """

    model: str
    true_arm: Arm
    truth: BasisChoice
    backend: str
    evaluations: tuple[Evaluation, ...]
    ranking: tuple[str, ...]
    motions: tuple[tuple[str, ...], ...] = ()
    run_lengths: tuple[tuple[float, tuple[str, ...]], ...] = ()

    def _facts(self) -> dict[str, Any]:
        names = (evaluation.name for evaluation in self.evaluations)
        return {
            "winner": self.winner or "none",
            "ranking": ", ".join(self.ranking),
            "unranked": ", ".join(name for name in names if name not in self.ranking),
            "model": self.model,
            "truth": self.truth.label,
            "motions": len(self.motions),
        }

    @property
    def ranked(self) -> tuple[Evaluation, ...]:
        """The evaluations of `ranking`, best first."""
        by_name = {evaluation.name: evaluation for evaluation in self.evaluations}
        return tuple(by_name[name] for name in self.ranking)

    @property
    def winner(self) -> str | None:
        """The recommended design: the first, unless it is unstable on another truth."""
        first = self.ranked[:1]
        return first[0].name if first and not unstable_orders(first[0]) else None


@on_one_thread
def compare(
    arm: Arm | str | Path,
    designs: Sequence[Design | Controller | str | Path] | Design | Controller | str | Path,
    *,
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    baseline: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Judge several designs and controllers on the same truth plant and rank them.

    Parameters
    ----------
    arm
        The arm as the designs know it.
    designs
        Gain sets to compare; a given controller keeps its own design plant.
    true_arm, truth_basis
        The arm as it is, and its discretisation; by default the same arm, with the truth that its
        file names or two modes more than the finest design plant has.
    design_basis
        Discretisation of all design plants in place of the files'.
    baseline
        Whether to include a collocated joint PD loop: its gains are those of the stiffest design
        times the joints' own inertias at the final pose, or without any gains those for half the
        first frequency with joints held. It is left out if all designs are open loop.
    progress
        Called with a sentence before every longer piece of work.

    Returns
    -------
    Comparison
        Ranked by residual tip error, then tracking error, then energy; designs that reach torque
        limits come after those that do not, those that never settle into their band after all that
        do, and those without a final rest after these.

    Raises
    ------
    InputError
        When there is no design, two have one name, or one does not fit the arm or gives torques,
        not a motion.
        Designs that do not exist and runs that fail are not errors: they get a verdict.

    Examples
    --------
    >>> import flexctl
    >>> comparison = flexctl.compare("single-link-hub", ["hub-pd"], baseline=False)
    >>> comparison.ranking
    ('hub-pd',)
    """
    if isinstance(designs, str | Path | Design | Controller):
        designs = [designs]
    checks.kind("designs", designs, list, tuple, hint="of designs and controllers")
    checks.functions(progress=progress)
    if not designs:
        raise InputError("designs: expected at least one, got none")
    arm = load_model(arm)
    designs = [one if isinstance(one, Controller) else load_design(one) for one in designs]
    ready = {id(c.design): c for c in designs if isinstance(c, Controller)}
    files = [c.design if isinstance(c, Controller) else c for c in designs]
    for design in files:
        require_motion(design)
    names = [design.name for design in files]
    for k, name in enumerate(names):
        if name in names[:k]:
            raise InputError(f"designs: expected every name once, got {name} twice")
    say = progress or (lambda _words: None)
    finest = finest_basis(designs, design_basis)
    setup = Setup.of(arm, finest, true_arm=true_arm, truth_basis=truth_basis)
    basis = setup.truth_basis
    say(f"assembling the truth plant: {basis.order} {basis.kind} per link and plane")
    truth = setup.truth()
    ladder = [setup.truth(order, interpreted=True) for order in LADDER if order != basis.order]
    entries = with_baseline(arm, files, design_basis) if baseline else list(files)
    say(f"judging {', '.join(design.name for design in entries)}")
    judged = [ready.get(id(design), design) for design in entries]
    loops = [_close(arm, one, design_basis, truth) for one in judged]  # compiled once for all
    evaluations = _judge_all(loops, ladder)
    ranked = sorted((e for e in evaluations if e.ranks), key=lambda e: e.rank_key)
    pairs = list(zip(entries, [getattr(loop, "controller", None) for loop in loops], strict=True))
    motions = [own.reference if own else make_reference(one) for one, own in pairs]
    return Comparison(
        model=arm.name,
        true_arm=setup.true_arm,
        truth=basis,
        backend=truth.backend,
        evaluations=tuple(evaluations),
        ranking=tuple(e.name for e in ranked),
        motions=by_motion(entries, motions),
        run_lengths=_by_run_length(entries, motions),
    )


def with_baseline(
    arm: Arm, designs: Sequence[Design], basis: BasisChoice | None = None
) -> list[Design]:
    """Return designs and the baseline, unless they have it or are all open loop."""
    closed = [design for design in designs if not design.open_loop]
    if not closed or BASELINE in [design.name for design in designs]:
        return list(designs)
    return [*designs, baseline_design(arm, _stiffest(closed), basis)]


def _stiffest(designs: Sequence[Design]) -> Design:
    """Return the design with the largest Gp, preferably not a joint PD."""
    with_gains = [design for design in designs if design.gains]
    if not with_gains:
        return designs[0]
    return max(with_gains, key=lambda d: (not d.gains_are_torques, max(d.joint_gains.Gp)))


def baseline_design(arm: Arm, design: Design, basis: BasisChoice | None = None) -> Design:
    """Return a baseline joint PD loop with the bandwidth of another design, and its instruments.

    Its gains are that design's Gp and Gv times the diagonal of the rigid arm's mass matrix at the
    final pose, in commands (gains that are commands are kept); for a design without gains Gp = w^2
    and Gv = 1.4 w, w being half the first frequency of the arm there with its joints held.
    """
    check_design(arm, design)
    plant = assemble_plant(arm, basis or design.basis, interpreted=True)
    m, S = plant.m, plant.straight(np.eye(plant.m))
    final = plant.straight(make_reference(design).final)
    inertia = np.diag(S.T @ plant.mass_matrix(final) @ S)
    scale = np.ones(m) if design.gains_are_torques else inertia / plant.torque_per_command
    Gp, Gv = (design.gains.Gp, design.gains.Gv) if design.gains else _half_the_first(plant, design)
    others = ("second_loop", "slow_loop", "fast_loop", "observer", "state_space", "options")
    others += ("friction_compensation", "cascade", "position_feedback", "filters")
    others += ("instruments", "expect")
    table = {k: part for k, part in design.table().items() if k not in others}
    table.get("loop", {}).pop("measures", None)
    if design.reference.shaper:
        shaper = _shaper_in_numbers(plant, design)
        table["reference"] = table["reference"] | {"shaper": shaper}
    if instruments := collocated_instruments(plant, design):
        table["instruments"] = [one.table() for one in instruments]
    table |= {
        "summary": "Collocated joint PD, gravity fed forward",
        "source": "flexctl",
        "method": BASELINE,
        "name": BASELINE,
        "path": design.path,
        "gains": {
            "Gp": (np.broadcast_to(Gp, m) * scale).tolist(),
            "Gv": (np.broadcast_to(Gv, m) * scale).tolist(),
        },
    }
    return Design.model_validate(table)


def _shaper_in_numbers(plant: Plant, design: Design) -> dict[str, Any] | None:
    """Shaper of a design with numbers for modes of its loop, which another loop does not have.

    None where the design's controller does not exist.
    """
    choice = design.reference.shaper
    assert choice is not None
    if not any((choice.names_mode(entry) or ("",))[0] == "loop" for entry in choice.frequency):
        return choice.table()
    try:
        shaper = design_on(plant, design).reference.shaper
    except DesignError:
        return None
    assert shaper is not None
    numbers = {"frequency": shaper.frequencies, "damping_ratio": shaper.damping_ratios}
    return choice.table() | {name: values.tolist() for name, values in numbers.items()}


def _half_the_first(plant: Plant, design: Design) -> tuple[tuple[float], tuple[float]]:
    """Gp [1/s^2] and Gv [1/s] of half the first frequency with joints and rotors held, damping 0.7.

    For a rigid arm the motion sets the frequency: 10 rad in its duration.
    """
    motion = make_reference(design)
    free = np.arange(plant.n) >= plant.m
    free[list(plant.drives)] = False
    w = 10 / (motion.duration or 1.0)
    if free.any():
        w = float(linearise(plant, plant.straight(motion.final)).frequencies(free)[0]) / 2
    return (w**2,), (1.4 * w,)


def _close(
    arm: Arm, design: Design | Controller, basis: BasisChoice | None, truth: Plant
) -> ClosedLoop | Evaluation:
    """Close the loop of a design or a controller; without a controller the verdict says why."""
    if isinstance(design, Design):
        try:
            design = design_controller(arm, design, basis)
        except DesignError as error:
            return no_controller(design, basis or design.basis, truth.basis, str(error))
    loop = close_around(design, truth)
    compile_verdict(loop)
    return loop


def _judge_all(
    loops: Sequence[ClosedLoop | Evaluation], ladder: Sequence[Plant]
) -> list[Evaluation]:
    """Judge loops on all cores, those of the largest laws first, as they take longest.

    Every other one goes down the truth orders: two processes that have to derive these plants meet
    in the middle, and each finds what the other has derived.
    """
    sizes = [one.controller.n_state if isinstance(one, ClosedLoop) else 0 for one in loops]
    order = sorted(range(len(loops)), key=lambda k: -sizes[k])
    ways = ladder, ladder[::-1]
    judged = in_parallel([partial(_judge, loops[k], ways[i % 2]) for i, k in enumerate(order)])
    return [one for _, one in sorted(zip(order, judged, strict=True), key=lambda pair: pair[0])]


def _judge(loop: ClosedLoop | Evaluation, ladder: Sequence[Plant]) -> Evaluation:
    """Judge a loop; what is a verdict already stays."""
    if isinstance(loop, Evaluation):
        return loop
    return replace(evaluate(loop, others=ladder), gains=gains_used(loop.controller))


def by_motion(
    designs: Sequence[Design], motions: Sequence[ReferenceMotion]
) -> tuple[tuple[str, ...], ...]:
    """Names of designs grouped by motion: same ends and same path between them."""
    groups = _grouped(designs, motions, _same_motion)
    return tuple(names for _, names in groups)


def _by_run_length(
    designs: Sequence[Design], motions: Sequence[ReferenceMotion]
) -> tuple[tuple[float, tuple[str, ...]], ...]:
    """Return lengths of runs [s] with the names of designs, the shortest first."""
    pairs = zip(designs, motions, strict=True)
    lengths = [design.loop.duration or motion.usual_run for design, motion in pairs]
    return tuple(sorted(_grouped(designs, lengths, _same_length)))


def _grouped(
    designs: Sequence[Design], keys: Sequence[_Key], alike: Callable[[_Key, _Key], bool]
) -> list[tuple[_Key, tuple[str, ...]]]:
    """Group names of designs whose keys are alike; each group with the key of its first."""
    groups: list[tuple[_Key, list[str]]] = []
    for design, key in zip(designs, keys, strict=True):
        names = next((names for one, names in groups if alike(one, key)), None)
        if names is None:
            groups.append((key, [design.name]))
        else:
            names.append(design.name)
    return [(key, tuple(names)) for key, names in groups]


def _same_length(one: float, other: float) -> bool:
    return bool(np.isclose(one, other, rtol=1e-9))


def _same_motion(one: ReferenceMotion, other: ReferenceMotion) -> bool:
    times = np.linspace(0, max(one.duration, other.duration), _MOTION_SAMPLES)
    pairs = zip(one.sample(times)[:2], other.sample(times)[:2], strict=True)
    same_end = np.isclose(one.duration, other.duration, rtol=1e-9)
    return bool(same_end) and all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs)
