"""Claims of Theodore and Ghosal [TG95], in the order of their paper: sections 4.3 and 5."""

from __future__ import annotations

from collections.abc import Callable

from flexctl.view.papers import theodore_ghosal_branches as branches
from flexctl.view.papers import theodore_ghosal_lemma as lemma
from flexctl.view.papers import theodore_ghosal_motion as motion
from flexctl.view.papers import theodore_ghosal_stiffness as stiffness
from flexctl.view.papers.claim import Claim

CLAIMS: tuple[Callable[[], Claim], ...] = (
    lemma.abstract,
    stiffness.overestimate,
    stiffness.equation_48,
    stiffness.equations_49_50,
    stiffness.remark_1,
    stiffness.remark_2,
    stiffness.rank,
    lemma.remark_3,
    lemma.lemma,
    lemma.percentage,
    lemma.proof,
    lemma.second_loop,
    lemma.proper_care,
    lemma.discretisation,
    motion.desired,
    motion.joint_errors,
    motion.tip_error,
    motion.second_loop,
    motion.similar,
    motion.behind,
    motion.reason,
    branches.always_higher,
    branches.converge,
    branches.acceptable,
    branches.invariant,
    branches.varying,
    branches.proportional,
)
