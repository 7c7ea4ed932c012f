"""Charts of the overestimate of the stiffness that a loop tolerates: over gains, and damping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flexctl.checks import Array
from flexctl.control import make_reference
from flexctl.errors import InputError
from flexctl.model import written_ratios
from flexctl.plant import assemble_plant
from flexctl.robustness import Case, stiffness_lemma
from flexctl.search.changed_loops import over_damping, over_gains
from flexctl.search.one_number import Trial, search_over

RATIOS = (0.0, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1)
_N_FACTORS = 12


@dataclass(frozen=True, kw_only=True)
class GainChart:
    """alpha_upper over the joint gains, under the law of the gross motion.

    Attributes
    ----------
    design
        Name of the design.
    Gp, Gv
        Factors (k,) and (l,) [-] of the design's gains, ascending; Gi does not change.
    alpha_upper
        (k, l) [-], at the worst pose; NaN where the loop is unstable at a pose without any error,
        infinite without a limit.
    modes
        Modes that become unstable there, by row; "" without a limit.
    own
        Stable interval with the design's own gains.
    own_gains
        Gp and Gv of each joint in the design's file.
    n_poses
        Number of judged poses along the motion; 1 for the final one.
    """

    design: str
    Gp: Array
    Gv: Array
    alpha_upper: Array
    modes: tuple[tuple[str, ...], ...]
    own: Trial
    own_gains: tuple[tuple[float, ...], tuple[float, ...]]
    n_poses: int


def gain_chart(
    case: Case,
    *,
    span: tuple[float, float] = (0.1, 10.0),
    count: int = _N_FACTORS,
    progress: Callable[[str], None] | None = None,
) -> GainChart:
    """Find alpha_upper on a logarithmic grid of `count` factors of Gp and as many of Gv.

    Exact, at the poses of the case.

    Parameters
    ----------
    case
        Arm, design and number of poses.
    span
        Least and largest factor [-], above 0.
    count
        Number of factors of each gain.
    progress
        Called with a sentence before every row.

    Raises
    ------
    InputError
        When the range is empty.
    DesignError
        As `design_controller`.
    """
    if not 0 < span[0] < span[1] < np.inf or count < 2:
        got = f"{count} from {span[0]:g} to {span[1]:g}"
        raise InputError(f"factors: expected 2 or more in a range above 0, got {got}")
    factors, rows = np.geomspace(*span, count), []
    for k, Gp in enumerate(factors.tolist()):
        if progress:
            progress(f"chart of gains: row {k + 1} of {count}")
        loops = over_gains(case, lambda Gv, Gp=Gp: {"Gp": Gp, "Gv": Gv})
        rows.append(search_over(loops, factors).trials)
    (own,) = search_over(over_gains(case, lambda _own: {}), [np.nan]).trials
    gains = case.design.joint_gains
    return GainChart(
        design=case.design.name,
        Gp=factors,
        Gv=factors,
        alpha_upper=np.array([[trial.alpha_upper for trial in row] for row in rows]),
        modes=tuple(tuple(trial.mode for trial in row) for row in rows),
        own=own,
        own_gains=(gains.Gp, gains.Gv),
        n_poses=max(case.n_path, 1),
    )


@dataclass(frozen=True, kw_only=True)
class DampingChart:
    """alpha_upper over the damping ratio of all modes of all links.

    Attributes
    ----------
    design
        Name of the design.
    ratios
        (k,) [-], ascending.
    known, unknown
        alpha_upper (k,) [-] of a controller designed with the damping and of one without; NaN where
        the loop is unstable without an error of the stiffness, or cannot be designed.
    modes
        Modes that become unstable, (known, unknown), by ratio; "" without a limit.
    alpha_star
        Margin of the lemma [-] at the final pose, which does not depend on damping.
    own_ratios
        Damping ratios of the flexible links in the arm's file [-].
    second_loop
        Whether the final pose is judged under the second loop.
    n_path
        Number of poses along the motion that are judged too, under the law of the gross motion.
    """

    design: str
    ratios: Array
    known: Array
    unknown: Array
    modes: tuple[tuple[str, ...], tuple[str, ...]]
    alpha_star: float
    own_ratios: tuple[float, ...]
    second_loop: bool
    n_path: int


def damping_chart(
    case: Case,
    *,
    ratios: Sequence[float] = RATIOS,
    progress: Callable[[str], None] | None = None,
) -> DampingChart:
    """Find alpha_upper over the damping ratio of all links, known and unknown to the controller.

    At the final pose, under the law that acts there, and at the poses of the motion; `case.n_path`
    may be 0. Dampers of springs do not change, and are unknown too where the damping is. Gains of a
    second loop, a fast loop and an observer are redesigned for every ratio.

    Raises
    ------
    InputError
        When the ratios do not ascend within [0, 1).
    """
    if not len(ratios) or ratios[0] < 0 or ratios[-1] >= 1 or (np.diff(ratios) <= 0).any():
        raise InputError(f"ratios: expected some that ascend within 0 to 1, got {list(ratios)}")
    say = progress or (lambda _words: None)
    charts = []
    for knowledge, unknown in (("known", False), ("unknown", True)):
        say(f"chart of damping: {knowledge} to the controller")
        loops = over_damping(replace(case, unknown_damping=unknown))
        charts.append(search_over(loops, ratios).trials)
    known, unknown = charts
    return DampingChart(
        design=case.design.name,
        ratios=np.array(ratios, dtype=float),
        known=np.array([trial.alpha_upper for trial in known]),
        unknown=np.array([trial.alpha_upper for trial in unknown]),
        modes=(tuple(trial.mode for trial in known), tuple(trial.mode for trial in unknown)),
        alpha_star=_alpha_star(case),
        own_ratios=written_ratios(case.setup.true_arm),
        second_loop=case.design.second_loop is not None,
        n_path=case.n_path,
    )


def _alpha_star(case: Case) -> float:
    """Return alpha* of the lemma at the final pose, which does not depend on damping."""
    plant = assemble_plant(case.setup.design_arm, case.setup.design_basis, interpreted=True)
    return stiffness_lemma(plant, plant.straight(make_reference(case.design).final)).alpha_star
