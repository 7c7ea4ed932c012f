"""What is closed around what: the closed loop, where it rests, its linear model."""

from flexctl.loop.closed_loop import ClosedLoop, close_around, close_loop
from flexctl.loop.events import APPLY, JUMP, SAMPLE, Event, schedule
from flexctl.loop.linear import (
    ON_AXIS,
    LinearLoop,
    damping_ratios,
    judge_poles,
    linearise_at,
    linearise_loop,
    one_sample,
    sampled_loop,
    spectral_abscissa,
)
from flexctl.loop.mode_names import ModeNames, eigenvectors, in_words, name_modes
from flexctl.loop.poses import (
    N_PATH,
    LinearPoses,
    final_loop_weight,
    linear_poses,
    motion_poses,
    path_rests,
)
from flexctl.loop.rest import (
    Rest,
    find_rest,
    follow_rest,
    keep_still,
    law_slopes,
    rest_at_reference,
)
from flexctl.loop.resting import (
    Resting,
    describe_rest,
    exceeding,
    other_rest,
    too_weak,
    why_it_leaves,
    why_not_held,
)
from flexctl.loop.setup import LADDER, Setup, default_truth

__all__ = [
    "APPLY",
    "JUMP",
    "LADDER",
    "N_PATH",
    "ON_AXIS",
    "SAMPLE",
    "ClosedLoop",
    "Event",
    "LinearLoop",
    "LinearPoses",
    "ModeNames",
    "Rest",
    "Resting",
    "Setup",
    "close_around",
    "close_loop",
    "damping_ratios",
    "default_truth",
    "describe_rest",
    "eigenvectors",
    "exceeding",
    "final_loop_weight",
    "find_rest",
    "follow_rest",
    "in_words",
    "judge_poles",
    "keep_still",
    "law_slopes",
    "linear_poses",
    "linearise_at",
    "linearise_loop",
    "motion_poses",
    "name_modes",
    "one_sample",
    "other_rest",
    "path_rests",
    "rest_at_reference",
    "sampled_loop",
    "schedule",
    "spectral_abscissa",
    "too_weak",
    "why_it_leaves",
    "why_not_held",
]
