"""Every claim of Subudhi and Morris [SM02], in the order of their paper."""

from __future__ import annotations

from collections.abc import Callable

from flexctl.view.papers import subudhi_morris_control as control
from flexctl.view.papers import subudhi_morris_equations as equations
from flexctl.view.papers import subudhi_morris_motion as motion
from flexctl.view.papers import subudhi_morris_open as undecided
from flexctl.view.papers import subudhi_morris_scales as scales
from flexctl.view.papers.claim import Claim

CLAIMS: tuple[Callable[[], Claim], ...] = (
    motion.underactuated,
    undecided.experiments,
    motion.assumption_4,
    motion.assumption_6,
    undecided.small_angles,
    equations.equation_19,
    equations.equation_22,
    equations.equation_29_30,
    equations.equation_31,
    equations.equation_37,
    equations.equation_38_39,
    equations.equation_40_46,
    equations.equation_42,
    equations.equation_47,
    equations.equation_48,
    motion.frozen_shapes,
    equations.equation_53_55,
    scales.small_parameter,
    scales.equation_63,
    scales.equation_66,
    scales.equation_67,
    scales.equation_69,
    scales.controllable,
    scales.equation_70,
    motion.runge_kutta,
    motion.table_1,
    motion.oscillatory,
    motion.mode_amplitudes,
    motion.tip_amplitudes,
    motion.decay,
    motion.frequency,
    motion.joint_deviations,
    scales.equation_71,
    control.printed_gains,
    control.tracking,
    control.modes_damped,
    control.deflections_suppressed,
    control.torques,
    undecided.verified,
    undecided.more_complete,
    undecided.simpler,
    control.suppressed,
)
