"""Every claim of Subudhi and Morris [SM02], in the order of their paper."""

from __future__ import annotations

from collections.abc import Callable

from examples.papers.claim import Claim
from examples.papers.subudhi_morris import control, equations, motion, scales

CLAIMS: tuple[Callable[[], Claim], ...] = (
    motion.underactuated,
    motion.assumption_4,
    motion.assumption_6,
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
    motion.verified,
    control.suppressed,
)
