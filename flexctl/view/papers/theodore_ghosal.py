"""Claims of Theodore and Ghosal [TG95], in the order of their paper."""

from __future__ import annotations

from collections.abc import Callable

from flexctl.view.papers import theodore_ghosal_bases as bases
from flexctl.view.papers import theodore_ghosal_branches as branches
from flexctl.view.papers import theodore_ghosal_conclusions as conclusions
from flexctl.view.papers import theodore_ghosal_control as control
from flexctl.view.papers import theodore_ghosal_counts as counts
from flexctl.view.papers import theodore_ghosal_dynamics as dynamics
from flexctl.view.papers import theodore_ghosal_equations as equations
from flexctl.view.papers import theodore_ghosal_frequencies as frequencies
from flexctl.view.papers import theodore_ghosal_kinematics as kinematics
from flexctl.view.papers import theodore_ghosal_lemma as lemma
from flexctl.view.papers import theodore_ghosal_loads as loads
from flexctl.view.papers import theodore_ghosal_meshes as meshes
from flexctl.view.papers import theodore_ghosal_motion as motion
from flexctl.view.papers import theodore_ghosal_stiffness as stiffness
from flexctl.view.papers.claim import Claim

CLAIMS: tuple[Callable[[], Claim], ...] = (
    lemma.abstract,
    bases.controlled_end,
    bases.equivalence,
    bases.footnote_1,
    kinematics.transformations,
    kinematics.slopes_of_modes,
    frequencies.equations_9_11,
    loads.configuration,
    loads.inertia_3r,
    loads.root_finding,
    loads.table_look_up,
    kinematics.hermite,
    kinematics.axes_of_slopes,
    dynamics.sliding_inertia,
    dynamics.strain_energy,
    dynamics.gravity,
    dynamics.row_of_the_sliding_joint,
    control.decoupling,
    control.joint_errors,
    control.bounded_response,
    control.second_loop,
    meshes.few_modes,
    meshes.first_m,
    meshes.table_1,
    meshes.overestimates,
    meshes.diagonal,
    meshes.banded,
    meshes.monotonic,
    conclusions.closed_loops,
    loads.neglecting,
    frequencies.distinct,
    frequencies.equations_40_44,
    frequencies.solved_together,
    frequencies.equations_45_46,
    frequencies.equation_47,
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
    kinematics.drawing,
    kinematics.data,
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
    conclusions.recommendation,
    dynamics.coriolis,
    dynamics.inverse,
    dynamics.definite,
)
