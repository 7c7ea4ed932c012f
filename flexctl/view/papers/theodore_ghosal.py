"""Claims of Theodore and Ghosal [TG95], in the order of their paper: sections 4.3 and 4.4."""

from __future__ import annotations

from collections.abc import Callable

from flexctl.view.papers import theodore_ghosal_counts as counts
from flexctl.view.papers import theodore_ghosal_equations as equations
from flexctl.view.papers import theodore_ghosal_lemma as lemma
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
    *counts.CLAIMS,
    *equations.CLAIMS,
)
