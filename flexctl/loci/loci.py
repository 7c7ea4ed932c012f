"""Eigenvalue loci of a closed loop, along its motion or over a number of its arm or design."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control import Controller, design_controller
from flexctl.errors import InputError, NoEquilibriumError
from flexctl.loci.family import Loci, trace_loci
from flexctl.loci.record import EigenvalueLoci, Motion, Varied
from flexctl.loci.sources import Source, at_rest, on_reference, on_run, rests_until
from flexctl.loci.variation import Variation, over_number, rests_between
from flexctl.loop import ClosedLoop, Setup, close_loop
from flexctl.model import Arm, BasisChoice, Design, apply_settings, load_design, load_model
from flexctl.parallel import in_parallel, on_one_thread
from flexctl.simulation import simulate

_N_RUN = 2001  # samples of the run whose loops are linearised


@on_one_thread
def eigenvalue_loci(
    arm: ClosedLoop | Arm | str | Path,
    design: Design | Controller | str | Path | None = None,
    *,
    motion: Motion | None = None,
    over: str | None = None,
    between: tuple[float, float] | None = None,
    scaled: bool = False,
    redesign: bool = False,
    points: int = 101,
    proven: bool = False,
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    truth_set: Sequence[str] = (),
    fields: bool = False,
    progress: Callable[[str], None] | None = None,
) -> EigenvalueLoci:
    """Follow the eigenvalues of a closed loop along its motion, or over a number.

    Parameters
    ----------
    arm, design
        The arm as the designer knows it, and a design or a controller for it, names or paths too;
        or a closed loop, and no design.
    motion
        Along the nonlinear "run", about the moving "reference" with links straight, or at "rest" at
        its poses. By default along the run, of sampled laws at rest.
    over, between
        Number to vary instead of time, a key of the arm (``payload.mass``, ``link2.EI.y``) or of
        the design (``gains.Gp``), and its range [its unit]. The loop rests at the final pose.
    scaled
        Whether the range is of factors of what the file has: a number, an array or a table.
    redesign
        Whether the controller is redesigned for each value of a number of the arm; by default only
        the true arm changes, which the law does not know. Over a number of the design the law
        always is.
    points
        Number of values of the parameter; steps between them are refined as they must be.
    proven
        Whether to prove that every branch is continued rightly; by default branches are followed by
        their eigenvectors and only what that leaves in doubt is proven. `Loci.unproven` has the
        ranges without a proof.
    true_arm, truth_basis, design_basis
        As in `compare`; not of a closed loop, which has them.
    truth_set
        Settings of the true arm alone, such as ``link2.EI=*0.6``, made after the number is set.
    fields
        Whether to keep what every branch moves, by which discretisations are compared.
    progress
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        When the design measures nothing, the key is unknown, the range is none, or arguments
        exclude each other.
    NoEquilibriumError
        When the loop has an equilibrium at none of the values, or at the start of the motion.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=1)
    >>> loci = flexctl.eigenvalue_loci(loop, over="gains.Gv", between=(2.0, 40.0), points=5)
    >>> loci.unit, loci.design_value, loci.stability_limits
    ('N m s/rad', 6.0, ())
    >>> f"least damping ratio at the design value: {min(loci.damping_at_design):.2f}"
    'least damping ratio at the design value: 0.60'
    """
    checks.kind("truth_set", truth_set, list, tuple)
    checks.functions(progress=progress)
    if isinstance(arm, ClosedLoop):
        own = {"design": design, "true_arm": true_arm, "truth_basis": truth_basis}
        subject = _of_loop(arm, own | {"design_basis": design_basis})
    else:
        subject = _of_arm(load_model(arm), design, true_arm, truth_basis, design_basis)
    study = _Study(
        subject=subject,
        truth_set=tuple(truth_set),
        points=_checked_points(points),
        fields=fields,
        proven=proven,
        say=progress or (lambda _words: None),
    )
    if over is None:
        _refuse_without_number({"between": between, "scaled": scaled, "redesign": redesign})
        return study.along(motion)
    if motion is not None:
        raise InputError(f"motion: expected none with over, got {motion!r}")
    return study.over(over, _checked_range(between), scaled=scaled, redesign=redesign)


@dataclass(frozen=True, kw_only=True)
class _Subject:
    """A design on a setup; with the controller, and the loop, where they are there already."""

    setup: Setup
    design: Design
    controller: Controller | None = None
    closed: ClosedLoop | None = None

    def __post_init__(self) -> None:
        """Refuse a design without feedback."""
        if self.design.open_loop:
            got = self.design.method
            raise InputError(f"{self.design.label}: expected a design with feedback, got {got}")


def _of_loop(closed: ClosedLoop, others: Mapping[str, object]) -> _Subject:
    """Take a loop that is closed already; refuse what would be another one."""
    for name, value in others.items():
        if value is not None:
            raise InputError(f"{name}: expected none with a closed loop, got one")
    controller = closed.controller
    setup = Setup(
        design_arm=controller.plant.arm,
        true_arm=closed.truth.arm,
        design_basis=controller.plant.basis,
        truth_basis=closed.truth.basis,
    )
    return _Subject(setup=setup, design=controller.design, controller=controller, closed=closed)


def _of_arm(
    arm: Arm,
    design: Design | Controller | str | Path | None,
    true_arm: Arm | str | Path | None,
    truth_basis: BasisChoice | None,
    design_basis: BasisChoice | None,
) -> _Subject:
    """Take an arm with a design for it, or with a controller, which keeps its own design plant."""
    if design is None:
        raise InputError("design: expected a design or a controller for the arm, got none")
    true_arm = arm if true_arm is None else true_arm
    if isinstance(design, Controller):
        plant = design.plant
        setup = Setup.of(plant.arm, plant.basis, true_arm=true_arm, truth_basis=truth_basis)
        return _Subject(setup=setup, design=design.design, controller=design)
    design = load_design(design)
    basis = design_basis or design.basis
    setup = Setup.of(arm, basis, true_arm=true_arm, truth_basis=truth_basis)
    return _Subject(setup=setup, design=design)


def _checked_points(points: int) -> int:
    if not isinstance(points, int | np.integer) or points < 2:
        raise InputError(f"points: expected a whole number of at least 2, got {points!r}")
    return int(points)


def _refuse_without_number(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value:
            raise InputError(f"{name}: expected over=KEY with it, got none")


def _checked_range(between: Any) -> tuple[float, float]:
    if np.shape(between) != (2,):
        raise InputError(f"between: expected a range of two numbers with over, got {between}")
    low, high = (float(end) for end in checks.finite("between", between))
    if not low < high:
        raise InputError(f"between: expected an ascending range, got {low:g} to {high:g}")
    return low, high


@dataclass(frozen=True, kw_only=True)
class _Study:
    """What is followed, at how many values."""

    subject: _Subject
    truth_set: tuple[str, ...]
    points: int
    fields: bool
    proven: bool
    say: Callable[[str], None]

    def along(self, motion: Motion | None) -> EigenvalueLoci:
        """Follow them along the motion and at rest; both are the same where that is asked for."""
        if motion not in (None, *get_args(Motion)):
            expected = ", ".join(map(repr, get_args(Motion)))
            raise InputError(f"motion: expected one of {expected}, got {motion!r}")
        closed = self._close()
        end = closed.controller.reference.duration
        if not end:
            expected = "a reference that moves, or a number to vary (over)"
            raise InputError(f"{self.subject.design.label}: expected {expected}, got a set point")
        last = rests_until(closed, np.linspace(0, end, self.points))
        grid = np.linspace(0, last, self.points)
        how = motion or ("run" if closed.controller.sample_time is None else "rest")
        poses = f"{self.points} poses of the motion at rest"
        self.say(poses if how == "rest" else f"the motion, and {poses}")
        moving: dict[str, Callable[[], Source]] = {
            "run": lambda: _on_own_run(closed, end),
            "reference": lambda: on_reference(closed),
        }
        families = [*([moving[how]] if how in moving else []), lambda: at_rest(closed)]
        traced = in_parallel([lambda own=own: self._trace(own(), grid) for own in families])
        above = last if last < end else None
        return self._record(traced[0], frozen=traced[-1], motion=how, no_rest_above=above)

    def over(
        self, key: str, between: tuple[float, float], *, scaled: bool, redesign: bool
    ) -> EigenvalueLoci:
        """Follow them over a number, as far as the loop has an equilibrium."""
        own = self.subject.design.state_space
        if redesign and own and own.feedforward is None:
            expected = "a law that is designed for the arm"
            raise InputError(f"redesign: expected {expected}, got one whose matrices are given")
        variation = Variation(
            key=key,
            setup=self.subject.setup,
            design=self.subject.design,
            controller=self.subject.controller,
            scaled=scaled,
            redesign=redesign,
            truth_set=self.truth_set,
        )
        value = variation.design_value
        self.say(f"{self.points} values of {key}")
        grid, source = np.linspace(*between, self.points), over_number(variation, between)
        try:
            loci = self._trace(source, grid, value)
        except NoEquilibriumError:
            grid = rests_between(source, grid, value)
            loci = self._trace(source, grid, value)
        first, last = float(grid[0]), float(grid[-1])
        varied: Varied = "arm and law" if redesign else "true arm"
        return self._record(
            loci,
            unit=variation.unit,
            scaled=scaled,
            varied="law" if variation.of_design else varied,
            design_value=value,
            no_rest_below=first if first > between[0] else None,
            no_rest_above=last if last < between[1] else None,
        )

    def _close(self) -> ClosedLoop:
        """Close the loop, unless it is closed already."""
        subject, setup = self.subject, self.subject.setup
        if subject.closed and not self.truth_set:
            return subject.closed
        controller = subject.controller or design_controller(
            setup.design_arm, subject.design, setup.design_basis
        )
        true_arm = apply_settings(setup.true_arm, self.truth_set, option="truth_set")
        return close_loop(controller, true_arm, setup.truth_basis)

    def _trace(self, source: Source, grid: Array, design_value: float | None = None) -> Loci:
        return trace_loci(
            source, grid, design_value=design_value, fields=self.fields, proven=self.proven
        )

    def _record(self, loci: Loci, **facts: Any) -> EigenvalueLoci:
        setup = self.subject.setup
        return EigenvalueLoci(
            model=setup.design_arm.name,
            design=self.subject.design.name,
            basis=setup.design_basis,
            truth=setup.truth_basis,
            sampled=bool(self.subject.design.loop.sample_time),
            truth_set=self.truth_set,
            loci=loci,
            **facts,
        )


def _on_own_run(closed: ClosedLoop, end: float) -> Source:
    return on_run(closed, simulate(closed, times=np.linspace(0, end, _N_RUN), duration=end))
