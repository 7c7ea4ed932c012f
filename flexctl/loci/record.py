"""The record of eigenvalue loci: branches, what they were followed over, limits of stability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.loci.branches import Range
from flexctl.loci.crossings import AxisCrossing
from flexctl.loci.family import Branch, Loci
from flexctl.loop import damping_ratios
from flexctl.model import BasisChoice
from flexctl.records import Summary

Motion: TypeAlias = Literal["run", "reference", "rest"]
Varied: TypeAlias = Literal["time", "true arm", "arm and law", "law"]


@dataclass(frozen=True, kw_only=True, repr=False)
class EigenvalueLoci(Summary):
    """Closed-loop eigenvalues as branches, along a motion or over a number.

    Attributes
    ----------
    model, design
        Names of the arm and of the design.
    basis, truth
        Discretisations of the design plant and of the truth plant.
    unit
        Of the parameter: "s" along a motion, "-" of factors.
    scaled
        Whether the parameter is a factor of what the file has.
    varied
        What changes with the parameter: of "law" and "arm and law" the controller is redesigned for
        each value.
    design_value
        Value of the parameter at which arm and design are those of the files; None along a motion,
        and where it is no single number.
    motion
        How the motion is taken: along the nonlinear run, about the moving reference, or at rest at
        the poses of the reference; None over a number, where the loop rests at the final pose.
    no_rest_below, no_rest_above
        Values of the parameter below and above which the loop has no equilibrium at its reference,
        so that nothing is followed there; None where it has one.
    sampled
        Whether the law is sampled; eigenvalues are then log(z)/T of multipliers z and period T.
    truth_set
        Settings that only the true arm has, made after the number is set.
    loci
        The branches.
    frozen
        Those at rest at the same times, along a motion; None over a number.

    Examples
    --------
    >>> import flexctl
    >>> controller = flexctl.design_controller("single-link-hub", "hub-pd")
    >>> loop = flexctl.close_loop(controller, "single-link-hub", modes=1)
    >>> loci = flexctl.eigenvalue_loci(loop, motion="rest", points=3)
    >>> loci.branches[loci.dominant[0]].label, loci.stable
    ('joint1 (1)', ((0.0, 1.0),))
    """

    model: str
    design: str
    basis: BasisChoice
    truth: BasisChoice
    unit: str = "s"
    scaled: bool = False
    varied: Varied = "time"
    design_value: float | None = None
    motion: Motion | None = None
    no_rest_below: float | None = None
    no_rest_above: float | None = None
    sampled: bool = False
    truth_set: tuple[str, ...] = ()
    loci: Loci
    frozen: Loci | None = None

    @property
    def parameter(self) -> str:
        """Name of the parameter: ``t``, or the key of the number."""
        return self.loci.parameter

    @property
    def s(self) -> Array:
        """Values of the parameter (k,), in `unit`."""
        return self.loci.s

    @property
    def branches(self) -> tuple[Branch, ...]:
        """One per eigenvalue (n,), slow ones first."""
        return self.loci.branches

    @property
    def dominant(self) -> tuple[int, ...]:
        """Indices of the branches of which the response is made, the most dominant first."""
        return self.loci.dominant

    @property
    def stable(self) -> tuple[Range, ...]:
        """Ranges of the parameter over which no branch is unstable."""
        return self.loci.stable

    @property
    def stability_limits(self) -> tuple[AxisCrossing, ...]:
        """Crossings of the imaginary axis at which the loop loses or gains its stability."""
        return tuple(one for one in self.loci.crossings if one.whole)

    @property
    def at_design(self) -> ComplexArray | None:
        """Eigenvalues (n,) [1/s] at the design value, by branch; None where it is not followed."""
        return self.loci.at_design

    @property
    def frequencies_at_design(self) -> Array | None:
        """Absolute values of the eigenvalues (n,) [rad/s] at the design value, by branch."""
        return None if self.at_design is None else np.abs(self.at_design)

    @property
    def damping_at_design(self) -> Array | None:
        """Damping ratios, -real part over absolute value (n,), at the design value, by branch."""
        return None if self.at_design is None else damping_ratios(self.at_design)
