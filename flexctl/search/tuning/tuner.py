"""Tune a design: its numbers, what is minimised, which limits are kept, over which arms."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from flexctl import checks
from flexctl.loop import ShapesChoice
from flexctl.model import Arm, BasisChoice, Design, load_design, load_model
from flexctl.parallel import on_one_thread
from flexctl.search.samples import Spec, Variation
from flexctl.search.tuning.asked import asked_of, check_effort
from flexctl.search.tuning.free_numbers import Bounds
from flexctl.search.tuning.local_search import Step
from flexctl.search.tuning.memory import Memory
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.record import Tuning
from flexctl.search.tuning.rounds import Rounds

STARTS = 2
EVALUATIONS = 160  # of one start
UNSEEN = 20


@on_one_thread
def tune(
    arm: Arm | str | Path,
    design: Design | str | Path,
    free: Mapping[str, Bounds] | Sequence[str] = (),
    *,
    minimise: str | Sequence[str] | None = None,
    subject_to: Sequence[str] | None = None,
    over: Mapping[str, Spec | Variation] | None = None,
    quantile: float | None = None,
    untied: bool = False,
    starts: int = STARTS,
    evaluations: int = EVALUATIONS,
    unseen: int = UNSEEN,
    seed: int = 0,
    jobs: int | None = None,
    ledger: str | Path | None = None,
    shapes: ShapesChoice = "kept",
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    progress: Callable[[Step], None] | None = None,
    interrupted: Callable[[], None] | None = None,
) -> Tuning:
    """Find gains with which a metric is as small as possible while limits of others are kept.

    Parameters
    ----------
    arm, design
        The arm as the design knows it, and the design whose numbers are the start.
    free
        Bounds by key of the numbers that may change, or their keys; see `read_free`. By default, as
        of `minimise`, `subject_to`, `over`, `quantile` and `untied`, what the design's table `tune`
        has; without it all its gains and weights.
    minimise
        A metric, a weighted sum, or several of which the greatest counts; see `read_objective`. By
        default the settling time.
    subject_to
        Limits, such as ``"margins.gain_db>=6"``; with ``nominal.`` before it one of the arm in the
        file alone.
    over
        By key of the true arm how it varies, as of `sweep`: all limits and the objective are then
        those of the worst arm.
    quantile
        Share of the arms, in 0.5 .. 1, on which limits are to be kept and the objective reached
        together, instead of all: of those that lists or a table name, else of enough random ones.
        The nominal arm always counts.
    untied
        Whether equal gains may become different.
    starts, evaluations, seed
        Number of starts, the first being the design, evaluations of each, seed of the others. Of
        metrics of the linear loop alone, which nothing is run for, five times as many.
    unseen
        Number of arms on which the result is verified, where arms vary.
    jobs
        Processes; by default one on each core, on Linux and with OPENBLAS_NUM_THREADS=1.
    ledger
        File in which all is kept that is evaluated: the same call goes on where another was ended.
    shapes
        Whether modes keep the shapes of the arm in the file where the arm varies, or are "rebuilt"
        for each arm, as of `sweep`.
    true_arm, truth_basis, design_basis
        As of `compare`.
    progress
        Called with the state of the first search after every evaluation.
    interrupted
        Called once an interrupt (Ctrl-C) has ended the search; the best so far is returned.

    Raises
    ------
    InputError
        When a key, a bound, a metric or a limit makes no sense, or no metric depends on a number;
        when the ledger is another file, or that of another arm or of other numbers.
    DesignError
        When there is no controller with the numbers of the file.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.tune(
    ...     "single-link-hub", "hub-pd", {"gains.Gv": (1.0, 10.0)},
    ...     minimise="stability.spectral_abscissa", subject_to=[], starts=1, jobs=1,
    ... )
    >>> before, after = found.values["gains.Gv"]
    >>> before, round(after, 1)
    (6.0, 8.6)
    """
    begin = time.monotonic()
    effort = check_effort(starts=starts, evaluations=evaluations, seed=seed, jobs=jobs)
    unseen = check_effort(unseen=unseen)["unseen"]
    checks.kind("ledger", ledger, str, Path, type(None))
    checks.functions(progress=progress, interrupted=interrupted)
    arm, design = load_model(arm), load_design(design)
    asked = asked_of(design, free, minimise, subject_to, over, untied=untied, quantile=quantile)
    with asked.named_in(design):
        problem = read_problem(
            arm,
            design,
            asked.free,
            minimise=asked.minimise,
            subject_to=asked.subject_to,
            over=asked.over,
            untied=asked.untied,
            shapes=shapes,
            true_arm=true_arm,
            truth_basis=truth_basis,
            design_basis=design_basis,
        )
        with Memory(Path(ledger) if ledger else None, problem) as memory:
            work = Rounds(problem, asked, memory, **effort)
            work.progress, work.heeded = progress, interrupted
            return work.run(unseen, begin)
