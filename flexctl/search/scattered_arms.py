"""The same gain sets on the same sampled arms: how often each wins, fails, settles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.loop import ShapesChoice
from flexctl.model import (
    Arm,
    BasisChoice,
    Design,
    apply_settings,
    is_of_design,
    load_design,
    load_model,
)
from flexctl.parallel import on_one_thread
from flexctl.records import Summary
from flexctl.search.cluster import Cluster
from flexctl.search.ledger import check_place
from flexctl.search.samples import BASES, Spec, Variation, read_table, read_variation
from flexctl.search.statistics import Share, share, summarise
from flexctl.search.sweeps import Sweep, sweep
from flexctl.verdict import with_baseline

SAMPLES = 100
_ROUND_OFF = 1e-9


@dataclass(frozen=True, kw_only=True)
class WorstArm:
    """The sampled arm on which a gain set does worst.

    Attributes
    ----------
    sample
        Its number, from 0.
    values
        Its numbers by key.
    why
        Why the gain set has no rank there: "unstable", or why the verdict failed; None where it has
        one, and all other samples rank better.
    arm
        The arm as it is.
    """

    sample: int
    values: dict[str, float]
    why: str | None
    arm: Arm = field(repr=False)


@dataclass(frozen=True, kw_only=True, repr=False)
class Scatter(Summary):
    """Verdicts on the same gain sets over the same sampled arms.

    Attributes
    ----------
    sweep
        All points: every gain set on every sample.
    n
        Number of samples on which all gain sets are evaluated.
    not_evaluated
        Number of samples whose arm, or a design for it, is refused: all shares leave them out.
    wins
        By gain set the share of samples on which it ranks first, as `compare` ranks, or ties with
        the first to within round-off.
    failed, unstable, settled
        Shares of the samples on which it has no full verdict, is unstable, and settles.
    quantiles
        By gain set and metric its values (3,) at `QUANTILES`, of every joint the worst.
    worst
        By gain set the arm on which it does worst.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.scatter(
    ...     "single-link-hub", "hub-pd", {"payload.mass": [0.1, 0.2]}, baseline=False, jobs=1
    ... )
    >>> found.n, found.worst["hub-pd"].values
    (2, {'truth.payload.mass': 0.2})
    """

    sweep: Sweep = field(repr=False)
    n: int
    not_evaluated: int
    wins: Mapping[str, Share]
    failed: Mapping[str, Share]
    unstable: Mapping[str, Share]
    settled: Mapping[str, Share]
    quantiles: Mapping[str, Mapping[str, Array]] = field(repr=False)
    worst: Mapping[str, WorstArm] = field(repr=False)

    def _facts(self) -> dict[str, Any]:
        shares = {name: f"{100 * one.value:.3g} %" for name, one in self.wins.items()}
        return {"model": self.sweep.model, "n": self.n, "wins": shares}


@on_one_thread
def scatter(
    arm: Arm | str | Path,
    designs: Sequence[Design | str | Path] | Design | str | Path,
    numbers: Mapping[str, Spec | Variation] | str | Path,
    *,
    samples: int | None = None,
    latin: int | None = None,
    seed: int = 0,
    baseline: bool = True,
    shapes: ShapesChoice = "kept",
    jobs: int | None = None,
    scheduler: str | None = None,
    ledger: str | Path | None = None,
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    progress: Callable[[int, int, float | None], None] | None = None,
    interrupted: Callable[[], None] | None = None,
) -> Scatter:
    """Judge gain sets on the same sampled arms: numbers of the true arm scatter, the laws do not.

    Parameters
    ----------
    arm, designs
        The arm as the designs know it, and gain sets; names or paths too.
    numbers
        By key of the arm its distribution, as of `sweep`; or a CSV file of samples.
    samples, latin, seed
        How many are drawn, 100 by default, as of `sweep`.
    baseline
        Whether to judge a joint PD loop too, as `compare` does.
    shapes, jobs, scheduler, ledger, true_arm, truth_basis, design_basis, progress, interrupted
        As of `sweep`.

    Raises
    ------
    InputError
        As of `sweep`, and where no number scatters.
    ComputationError
        When it was interrupted before all gain sets were judged on a sample.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.scatter(
    ...     "single-link-hub", "hub-pd", {"payload.mass": "uniform(0.1, 0.3)"}, samples=2,
    ...     baseline=False, jobs=1,
    ... )
    >>> found.wins["hub-pd"].count
    2
    """
    arm = load_model(arm)
    designs = [designs] if isinstance(designs, str | Path | Design) else designs
    checks.kind("designs", designs, list, tuple, hint="of designs")
    checks.kind("numbers", numbers, str, Path, Mapping)
    sets = [load_design(one) for one in designs]
    sets = with_baseline(arm, sets, design_basis) if baseline else sets
    specs = read_table(numbers) if isinstance(numbers, str | Path) else dict(numbers)
    checks.texts("numbers", specs)
    for key in specs:
        if key in BASES or is_of_design(key):
            of = " of the design" if is_of_design(key) else ""
            raise InputError(f"scatter: expected numbers of the arm, got {key}{of}")
    variations = [
        one if isinstance(one, Variation) else read_variation(key, one)
        for key, one in specs.items()
    ]
    drawn = any(one.sampled for one in variations)
    table = any(one.kind == "table" for one in variations)
    if drawn and not table and samples is None and latin is None:
        samples = SAMPLES
    found = sweep(
        arm,
        sets,
        {},
        truth_vary=specs,
        samples=samples,
        latin=latin,
        seed=seed,
        shapes=shapes,
        jobs=jobs,
        scheduler=scheduler,
        ledger=ledger,
        true_arm=true_arm,
        truth_basis=truth_basis,
        design_basis=design_basis,
        progress=progress,
        interrupted=interrupted,
    )
    return _summed_up(found, arm if true_arm is None else load_model(true_arm))


def check_judging(jobs: int | None, scheduler: str | None, ledger: Path | None) -> None:
    """Refuse where and with what `scatter` cannot judge, before other work. Raises InputError."""
    if scheduler is not None and jobs is not None:
        raise InputError(f"jobs: expected none with a scheduler, got {jobs}")
    if scheduler is not None:
        Cluster(scheduler)
    if ledger is not None:
        check_place(ledger)


def _summed_up(found: Sweep, arm: Arm) -> Scatter:
    """Count who wins, fails and settles on the samples on which all gain sets are evaluated."""
    count = len(found.designs)
    done = found.done.reshape(-1, count).all(axis=1)
    whole = found.evaluated.reshape(-1, count).all(axis=1)
    n = int(whole.sum())
    if not n and done.any():
        first = int(found.refused.argmax())
        raise ComputationError(f"scatter: no sample is evaluated: {found.failed[first]}")
    if not n:
        raise ComputationError("scatter: interrupted before all designs were judged on a sample")
    ranked = _ranks(found)
    place = _place(found, ranked)
    best = _best(found, place, count)[whole]
    judged = replace(found, done=np.repeat(whole, count))
    summaries = {one.name: one for one in summarise(judged)}
    wins = {name: share(best[:, k]) for k, name in enumerate(found.designs)}
    unstable = found.unstable.reshape(-1, count)[whole]
    return Scatter(
        sweep=found,
        n=n,
        not_evaluated=int(done.sum()) - n,
        wins=wins,
        failed={name: one.failed for name, one in summaries.items()},
        unstable={name: share(unstable[:, k]) for k, name in enumerate(found.designs)},
        settled={name: one.settled for name, one in summaries.items() if one.settled},
        quantiles={name: one.quantiles for name, one in summaries.items()},
        worst={
            name: _worst(found, arm, np.flatnonzero((found.design == k) & judged.done), place)
            for k, name in enumerate(found.designs)
        },
    )


def _ranks(found: Sweep) -> Array:
    """Whether the gain set takes part in the ranking of each point (n,), as `compare` ranks."""
    failed = np.array([k in found.failed for k in range(found.n_points)])
    run = ~np.isnan(found.worst("tracking.tip_error_rms"))
    return run & ~failed & (found.worst("stability.stable") > 0)


def _best(found: Sweep, place: Array, count: int) -> Array:
    """Whether each of `count` gain sets ranks first on each sample (n, count), alone or tied."""
    keys = np.column_stack(_rank_keys(found)).reshape(-1, count, 5)
    place = place.reshape(-1, count)
    first = np.take_along_axis(keys, place.argmin(axis=1)[:, None, None], axis=1)
    same = np.isclose(keys, first, rtol=_ROUND_OFF, atol=0.0, equal_nan=True).all(axis=2)
    return same & np.isfinite(place)


def _rank_keys(found: Sweep) -> list[Array]:
    """Keys (n,) of a ranking as by `Evaluation.rank_key`, the first deciding first."""
    settling = found.worst("residual.settling_time")
    return [
        np.where(np.isnan(settling), 2, np.isinf(settling)),  # without a rest, or never settles
        found.worst("effort.saturated_seconds") > 0,
        *(
            found.worst(key)
            for key in ("residual.tip_error_max", "tracking.tip_error_rms", "effort.energy")
        ),
    ]


def _place(found: Sweep, ranked: Array) -> Array:
    """Places (n,) of all points in one ranking; infinite without one."""
    order = np.lexsort(_rank_keys(found)[::-1])
    place = np.empty(found.n_points)
    place[order] = np.arange(found.n_points)
    return np.where(ranked, place, np.inf)


def _worst(found: Sweep, arm: Arm, own: Array, place: Array) -> WorstArm:
    """Return the worst of the points of a gain set: fails, is the most unstable, or ranks last."""
    growth = found.worst("stability.spectral_abscissa")
    lost, unstable = own[~np.isfinite(place[own])], own[found.unstable[own]]
    failed = [int(k) for k in lost if not found.unstable[k]]
    why = None
    if failed:
        k = failed[0]
        why = found.failed.get(k, "no verdict")
    elif len(unstable):
        k, why = int(unstable[growth[unstable].argmax()]), "unstable"
    else:
        k = int(own[place[own].argmax()])
    values = dict(zip(found.keys, found.values[k].tolist(), strict=True))
    settings = [
        f"{key.removeprefix('truth.')}={'*' if scaled else ''}{values[key]!r}"
        for key, scaled in zip(found.keys, found.scaled, strict=True)
    ]
    true = apply_settings(arm, settings, option="scatter")
    return WorstArm(sample=k // len(found.designs), values=values, why=why, arm=true)
