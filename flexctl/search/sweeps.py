"""Sweeps: gain sets and arms with many values of their numbers, judged on all cores."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import FlexctlWarning, InputError
from flexctl.loop import Setup, ShapesChoice, finest_basis
from flexctl.model import (
    Arm,
    BasisChoice,
    Design,
    check_design,
    command_units,
    is_of_design,
    load_design,
    load_model,
    nearest,
)
from flexctl.parallel import on_one_thread
from flexctl.plant import ShapeChange
from flexctl.records import Summary
from flexctl.search.cluster import Cluster
from flexctl.search.ledger import Ledger, Row
from flexctl.search.limits import Limit, read_limit
from flexctl.search.samples import Points, Spec, Variation, make_points
from flexctl.search.study import Study, is_rebuilt, study_digest
from flexctl.verdict import LINEAR, MORE_IS_BETTER, OF_RUNS, UNITS, require_motion

MANY = 1_000_000  # points that are judged without being asked for twice
_BRIEF = 0.5  # s in which no rate is measured
_CHUNK = {True: 10, False: 200}  # points that a worker judges at once, all metrics or linear ones


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep(Summary):
    """Verdicts on many points.

    Attributes
    ----------
    model, designs
        Names of the arm and the gain sets.
    keys
        Of the numbers that vary.
    units, scaled
        Units of the numbers, "" of a count; whether values are factors of what the file has.
    values
        Values (n, k) of the numbers at the points.
    design
        Index (n,) of the gain set at each point.
    grid
        Numbers of values of each key where all combinations of values are there, the last key and
        then the gain set changing fastest; None with samples.
    independent
        Whether the points of a gain set are samples that are drawn independently, all of them.
    metrics
        By name its values (n,), or (n, m) for every joint; NaN where a point has none. Infinite is
        a margin without a limit, and the settling time of what never settles. "stability.stable" is
        1 if it is, 0 if not, 0.5 on the imaginary axis. The linear ones are always among them.
    metric_units
        Units of these metrics, for the joints and actuators of the arm.
    limits
        Limits of metrics that were asked for.
    failed
        By point why it has no full verdict.
    refused
        Whether each point is not evaluated (n,), as arm or design with its values is refused;
        `failed` says why. Shares and quantiles leave it out.
    done
        Whether each point is judged (n,): a sweep that was interrupted has others.
    resumed
        How many points were in the ledger already.
    others
        How many points the ledger has of another content: a changed model, setting or version.
    shape_error
        Largest error of kept shapes where one number of the arm is least or greatest, that number's
        key and value; None where modes have the shapes of each arm.
    seconds, rate
        Time that this took, and points a second without the time to the first ones.
    jobs
        Processes.

    Examples
    --------
    >>> import flexctl
    >>> gains = {"gains.Gp": "*0.5:*2:3"}
    >>> found = flexctl.sweep("single-link-hub", "hub-pd", gains, metrics="linear", jobs=1)
    >>> found.n_points, found.failed
    (3, {})
    """

    model: str
    designs: tuple[str, ...]
    keys: tuple[str, ...]
    units: tuple[str, ...]
    scaled: tuple[bool, ...]
    values: Array
    design: Array
    grid: tuple[int, ...] | None
    independent: bool
    metrics: Mapping[str, Array] = field(repr=False)
    metric_units: Mapping[str, str] = field(repr=False)
    limits: tuple[Limit, ...]
    failed: Mapping[int, str]
    refused: Array = field(repr=False)
    done: Array = field(repr=False)
    resumed: int
    others: int
    shape_error: tuple[ShapeChange, str, float] | None
    seconds: float
    rate: float | None
    jobs: int

    def _facts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "designs": self.designs,
            "keys": self.keys,
            "n_points": self.n_points,
            "n_failed": len(self.failed),
            "n_not_evaluated": int(self.refused.sum()),
            "metrics": self.metrics,
        }

    @property
    def n_points(self) -> int:
        """How many points there are."""
        return len(self.values)

    @property
    def evaluated(self) -> Array:
        """Whether each point (n,) is judged and not refused."""
        return self.done & ~self.refused

    @property
    def stable(self) -> Array:
        """Whether the loop at each point is known to be stable (n,)."""
        return self.metrics["stability.stable"] == 1

    @property
    def unstable(self) -> Array:
        """Whether the loop at each point is known to be unstable (n,)."""
        return self.metrics["stability.stable"] == 0

    @cached_property
    def within(self) -> Array:
        """Whether each point (n,) has a verdict, a stable loop, and keeps all limits."""
        held = self.stable & [k not in self.failed for k in range(self.n_points)]
        for limit in self.limits:
            kept = limit.holds(self.metrics[limit.key])
            held &= kept if kept.ndim == 1 else kept.all(axis=1)  # of several joints by each
        return held

    def worst(self, key: str) -> Array:
        """Return a metric (n,), of several joints that of the worst."""
        values = self.metrics[key]
        if values.ndim == 1:
            return values
        return values.min(axis=1) if key in MORE_IS_BETTER else values.max(axis=1)

    @property
    def interrupted(self) -> bool:
        """Whether points are left."""
        return not self.done.all()


@on_one_thread
def sweep(
    arm: Arm | str | Path,
    designs: Sequence[Design | str | Path] | Design | str | Path,
    vary: Mapping[str, Spec | Variation],
    *,
    truth_vary: Mapping[str, Spec | Variation] | None = None,
    samples: int | None = None,
    latin: int | None = None,
    seed: int = 0,
    metrics: str | Sequence[str] = "full",
    limits: str | Sequence[str] = (),
    jobs: int | None = None,
    scheduler: str | None = None,
    ledger: str | Path | None = None,
    many: bool = False,
    shapes: ShapesChoice = "kept",
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    progress: Callable[[int, int, float | None], None] | None = None,
    interrupted: Callable[[], None] | None = None,
) -> Sweep:
    """Judge gain sets at many values of numbers of arm and design.

    Parameters
    ----------
    arm, designs
        The arm as the designs know it, and gain sets; names or paths too.
    vary
        By key how a number varies: see `Spec`, and `read_table` for samples in a file. Numbers of
        the arm change it as the designs know it and as it is. ``modes`` and ``elements`` are orders
        of the design plant's discretisation.
    truth_vary
        Numbers of the true arm alone, or of its discretisation.
    samples, latin, seed
        How many samples are drawn of distributions, as Monte Carlo or as a Latin hypercube, and the
        seed of the random numbers.
    metrics
        "full", "linear" (the poles of the loop at rest at its final pose) or names of metrics.
    limits
        A limit of a metric, such as ``"margins.gain_db>=6"``, or several: `Sweep.within` says which
        points keep all of them.
    jobs
        Processes; by default one on each core.
    scheduler
        Address of a Dask scheduler, such as ``tcp://host:8786``, whose workers judge instead of
        processes here; needs the extras ``flexctl[cluster]``.
    ledger
        File that keeps what is judged, where a sweep that was interrupted or killed goes on.
    many
        Whether more than a million points are meant.
    shapes
        Whether modes keep the shapes of the arm in the file, as `shape_error` says how well, or
        are "rebuilt" for each arm, which derives and compiles them anew.
    true_arm, truth_basis, design_basis
        As of `compare`.
    progress
        Called with the number of points judged, of all, and the seconds left, None if not known.
    interrupted
        Called once an interrupt (Ctrl-C) has ended the judging; what is judged is returned.

    Raises
    ------
    InputError
        When something is given that cannot be: an argument of another type, a key of no number, a
        distribution without its numbers, a ledger of another sweep, a scheduler that does not
        answer.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.sweep(
    ...     "single-link-hub", "hub-pd", {"gains.Gp": [10.0, 20.0]}, metrics="linear", jobs=1
    ... )
    >>> found.metrics["stability.stable"]
    array([1., 1.])
    """
    truth_vary = {} if truth_vary is None else truth_vary
    limits = [limits] if isinstance(limits, str) else limits
    for name, numbers in {"vary": vary, "truth_vary": truth_vary}.items():
        checks.kind(name, numbers, Mapping)
        checks.texts(name, numbers)
    checks.kind("limits", limits, list, tuple)
    checks.texts("limits", limits)
    checks.kind("ledger", ledger, str, Path, type(None))
    checks.kind("scheduler", scheduler, str, type(None))
    checks.functions(progress=progress, interrupted=interrupted)
    if jobs is not None:
        jobs = checks.whole("jobs", jobs, least=1)
    arm = load_model(arm)
    if isinstance(designs, str | Path | Design):
        designs = [designs]
    checks.kind("designs", designs, list, tuple, hint="of designs")
    sets = tuple(load_design(one) for one in designs)
    if not sets:
        raise InputError("designs: expected at least one, got none")
    for k, one in enumerate(sets):
        if one.name in [other.name for other in sets[:k]]:
            raise InputError(f"designs: expected every name once, got {one.name} twice")
        require_motion(one)
        check_design(arm, one)
    for key in truth_vary:
        if key in vary:
            raise InputError(f"{key}: expected it in vary or in truth_vary, got it in both")
        if is_of_design(key):
            raise InputError(f"truth_vary: expected numbers of the arm, got {key} of the design")
    numbers = {**vary, **{f"truth.{key}": spec for key, spec in truth_vary.items()}}
    points = make_points(numbers, samples=samples, latin=latin, seed=seed)
    n = len(points) * len(sets)
    if n > MANY and not many:
        raise InputError(
            f"points: expected at most {MANY:,} (--yes or many=True allows more), got {n:,}"
        )
    bounds = tuple(read_limit(one) for one in limits)
    wanted = _wanted(metrics, bounds)
    finest = finest_basis(sets, design_basis)
    setup = Setup.of(arm, finest, true_arm=true_arm, truth_basis=truth_basis)
    judged = None if any(key.startswith(OF_RUNS) for key in wanted) else wanted
    rebuilt = is_rebuilt(shapes)
    varied = points.variations, points.samples, rebuilt, judged
    content = study_digest(setup, sets, design_basis, *varied)
    study = Study(
        setup=setup,
        designs=sets,
        design_basis=design_basis,
        variations=tuple(one.outline for one in points.variations),
        rebuilt=rebuilt,
        wanted=judged,
        content=content,
    )
    study.check()
    if scheduler is not None and jobs is not None:
        raise InputError(f"jobs: expected none with a scheduler, got {jobs}")
    cluster = Cluster(scheduler) if scheduler is not None else None
    label = {"model": arm.name, "designs": [one.name for one in sets], "keys": list(points.keys)}
    jobs = _cores() if jobs is None else jobs
    with Ledger(Path(ledger) if ledger else None, content, label) as book:
        known = book.points()
        begin = time.monotonic()
        try:
            rate = _judge_all(study, points, n, known, book, cluster or jobs, progress)
        except KeyboardInterrupt:  # what is done is kept
            rate = None
            if interrupted:
                interrupted()
        return _result(
            study,
            points,
            n,
            book,
            wanted,
            limits=bounds,
            resumed=len(known),
            others=book.others,
            seconds=time.monotonic() - begin,
            rate=rate,
            jobs=len(cluster.workers) if cluster else jobs,
        )


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _wanted(metrics: str | Sequence[str], limits: Sequence[Limit]) -> tuple[str, ...]:
    """Names of metrics in the order of all: those asked for, those of limits, and linear ones.

    One of several may be "linear".
    """
    checks.kind("metrics", metrics, str, list, tuple)
    texts = metrics.split(",") if isinstance(metrics, str) else metrics
    checks.texts("metrics", texts)
    names = tuple(text.strip() for text in texts)
    if {*names} == {"full"}:
        return tuple(UNITS)
    if "full" in names:
        raise InputError(f"metrics: expected full alone, got {', '.join(names)}")
    names = tuple(name for name in names if name != "linear")
    for name in names:
        if name not in UNITS:
            raise InputError(
                f"metrics: expected full, linear or names of metrics ({nearest(name, UNITS)}), "
                f"got {name!r}"
            )
    wanted = {*names, *LINEAR, *(one.key for one in limits)}
    return tuple(name for name in UNITS if name in wanted)


def _judge_all(
    study: Study,
    points: Points,
    n: int,
    known: set[int],
    book: Ledger,
    workers: Cluster | int,
    progress: Callable[[int, int, float | None], None] | None,
) -> float | None:
    """Judge the points that are not known and store them; return points a second."""
    count, left = len(study.designs), n - len(known)
    size = _CHUNK[study.wanted is None or not set(study.wanted) <= set(LINEAR)]
    which = np.setdiff1d(np.arange(n), list(known), assume_unique=True)
    equations = study.equations(points.values)[which] if left else which
    if isinstance(workers, int):
        size = max(1, min(size, -(-left // (4 * workers))))
        chunks = _chunks(which, equations, size, workers)
    else:  # tasks of a cluster cost more
        order = which[np.argsort(equations, kind="stable")]
        chunks = [order[i : i + size] for i in range(0, left, size)]
    tasks = ([(k, points.at(k // count)) for k in chunk.tolist()] for chunk in chunks)
    done, first = 0, None
    for rows in _run(study, tasks, workers):
        book.add(rows)
        done += len(rows)
        now = time.monotonic()
        first = first or (now, done)
        rate = _rate(first, now, done)
        if progress:
            progress(n - left + done, n, (left - done) / rate if rate else None)
    return _rate(first, time.monotonic(), done) if first else None


def _rate(first: tuple[float, int], now: float, done: int) -> float | None:
    begin, before = first
    return (done - before) / (now - begin) if done > before and now > begin + _BRIEF else None


Task = list[tuple[int, dict[str, float]]]


def _chunks(points: Array, equations: Array, size: int, jobs: int) -> list[Array]:
    """Divide points (n,) into chunks of the same equations, given by their numbers (n,).

    Processes derive and keep the equations of as many groups as there are processes side by side.
    """
    order = np.argsort(equations, kind="stable")
    borders = np.flatnonzero(np.diff(equations[order])) + 1
    groups = np.split(points[order], borders)
    found = [
        (g // jobs, i, g, group[i : i + size])
        for g, group in enumerate(groups)
        for i in range(0, len(group), size)
    ]
    return [chunk for *_, chunk in sorted(found, key=lambda one: one[:3])]


def _run(study: Study, tasks: Iterator[Task], workers: Cluster | int) -> Iterator[list[Row]]:
    """Judge points; yield the rows of each task, in the order in which they arrive."""
    if isinstance(workers, Cluster):
        yield from workers.judge(study, tasks)
        return
    if workers == 1:
        yield from (_judge(study, task) for task in tasks)
        return
    import joblib  # takes a tenth of a second, which other searches need not spend

    with joblib.parallel_config("loky", n_jobs=workers, inner_max_num_threads=1):
        pool: Any = joblib.Parallel(return_as="generator_unordered")
        try:
            yield from pool(joblib.delayed(_judge)(study, task) for task in tasks)
        except BrokenProcessPool:
            warnings.warn(
                "a process that judged points was ended, perhaps for lack of memory; what is "
                "judged is kept, the same command tries the others again",
                FlexctlWarning,
                stacklevel=2,
            )


def _judge(study: Study, task: Task) -> list[Row]:
    return [study.judge(point, values) for point, values in task]


def _result(
    study: Study, points: Points, n: int, book: Ledger, wanted: tuple[str, ...], **facts: Any
) -> Sweep:
    """Gather the rows of the ledger."""
    count = len(study.designs)
    columns: dict[str, Array] = {}
    failed, done, refused = dict[int, str](), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for row in book.rows():
        done[row.point], refused[row.point] = True, row.refused
        if row.failed is not None:
            failed[row.point] = row.failed
        for name, value in (row.metrics or {}).items():
            if name not in wanted or value is None:
                continue
            if name not in columns:
                shape = (n, len(value)) if isinstance(value, list) else (n,)
                columns[name] = np.full(shape, np.nan)
            columns[name][row.point] = 0.5 if value == "marginal" else value
    return Sweep(
        model=study.setup.design_arm.name,
        designs=tuple(one.name for one in study.designs),
        keys=points.keys,
        units=tuple(study.unit(one) for one in points.variations),
        scaled=tuple(one.scaled for one in points.variations),
        values=np.repeat(points.values, count, axis=0),
        design=np.tile(np.arange(count), len(points)),
        grid=points.grid,
        independent=points.independent and bool(done.all()),
        metrics={name: columns.get(name, np.full(n, np.nan)) for name in wanted},
        metric_units={name: _units_on(study.setup.true_arm)[name] for name in wanted},
        failed=failed,
        refused=refused,
        done=done,
        shape_error=study.shape_error() if done.all() else None,
        **facts,
    )


def _units_on(arm: Arm) -> dict[str, str]:
    """Return the units of metrics for the joints and actuators of an arm, of all kinds it has."""
    joints = ["m" if link.joint == "prismatic" else "rad" for link in arm.links]
    own = {"rad or m": joints, "N m, N, A or V": command_units(arm)}
    of_arm = {unit: " or ".join(dict.fromkeys(found)) for unit, found in own.items()}
    return {key: of_arm.get(unit, unit) for key, unit in UNITS.items()}
