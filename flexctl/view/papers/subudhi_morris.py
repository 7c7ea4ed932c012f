"""Every claim of Subudhi and Morris, in the order of their paper."""

from flexctl.view.papers import subudhi_morris_motion as m

CLAIMS = (
    m.assumption_4,
    m.assumption_6,
    m.underactuated,
    m.table_1,
    m.frozen_shapes,
    m.runge_kutta,
    m.oscillatory,
    m.mode_amplitudes,
    m.tip_amplitudes,
    m.decay,
    m.frequency,
    m.joint_deviations,
)
