"""Claims of Theodore and Ghosal [TG95], in the order of their paper: 1.1, 4, 4.1 and 4.3."""

from __future__ import annotations

from collections.abc import Callable

from flexctl.view.papers import theodore_ghosal_bases as bases
from flexctl.view.papers import theodore_ghosal_lemma as lemma
from flexctl.view.papers import theodore_ghosal_meshes as meshes
from flexctl.view.papers import theodore_ghosal_stiffness as stiffness
from flexctl.view.papers.claim import Claim

CLAIMS: tuple[Callable[[], Claim], ...] = (
    lemma.abstract,
    bases.controlled_end,
    bases.equivalence,
    bases.footnote_1,
    meshes.few_modes,
    meshes.first_m,
    meshes.table_1,
    meshes.overestimates,
    meshes.diagonal,
    meshes.banded,
    meshes.monotonic,
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
)
