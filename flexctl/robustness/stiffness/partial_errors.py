"""The lemma for errors that are not proportional to the stiffness: of a part, or as given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from flexctl.checks import Array
from flexctl.model import Arm
from flexctl.plant import Plant, StiffnessError, assemble_plant, linearise
from flexctl.robustness.stiffness.lemma import Lemma, lemma_of

FARTHEST = 10.0  # error of a part up to which flutter is looked for, and no loss is known beyond


def lemma_by_part(plant: Plant, q: Array, groups: Mapping[str, Sequence[int]]) -> dict[str, Lemma]:
    """Lemma of [TG95], 4.3, for errors of some parts of the stiffness alone, by name.

    Parameters
    ----------
    plant
        The controller's model, its stiffness being right.
    q
        Coordinates (n,) whose joint variables give the pose.
    groups
        By name the indices of `Plant.stiffness_parts` that are wrong by one factor.
    """
    count, lemma = len(plant.stiffness_parts), _by_errors(plant, q)
    chosen = {name: np.isin(np.arange(count), indices) for name, indices in groups.items()}
    return {name: lemma(part.astype(float)) for name, part in chosen.items()}


def lemma_of_errors(plant: Plant, q: Array, errors: Array) -> Lemma:
    """Lemma of [TG95], 4.3, for errors K_hat/K - 1 of all parts of the stiffness at once.

    `alpha_star` is the share t of them at which the flexible block is lost; flutter is looked for
    until the largest is `FARTHEST`.

    Parameters
    ----------
    plant, q
        As in `lemma_by_part`.
    errors
        Of every one of `Plant.stiffness_parts` (p,) [-].
    """
    return _by_errors(plant, q, FARTHEST / np.abs(errors).max())(errors)


def _by_errors(plant: Plant, q: Array, farthest: float = FARTHEST) -> Callable[[Array], Lemma]:
    linear = linearise(plant, q)
    unknown = replace(plant, stiffness_error=StiffnessError(values=None))
    stiffness = unknown.casadi_functions["elastic_stiffness"]

    def lemma(errors: Array) -> Lemma:
        dK = np.array(stiffness(linear.q0, errors)) - np.array(stiffness(linear.q0, 0 * errors))
        dK = (dK + dK.T) / 2
        return lemma_of(linear, plant.drives, dK, farthest=farthest, basis=plant.basis)

    return lemma


def lemma_of_true_arm(plant: Plant, arm: Arm, q: Array) -> Lemma | None:
    """Lemma for the error that a model has beside an arm of other stiffness; None if it has none.

    dK = K_hat - K, K_hat of `plant`, K and the masses of `arm` in the same shapes: measured, say,
    where the model's is of finite elements. An `alpha_star` above 1 says that the lemma allows it.

    Parameters
    ----------
    plant
        The controller's model.
    arm
        The arm as it is.
    q
        Coordinates (n,) whose joint variables give the pose.
    """
    real = assemble_plant(arm, plant.basis, interpreted=True)
    K_hat, K = plant.elastic_stiffness(q), real.elastic_stiffness(q)
    dK = (K_hat - K + (K_hat - K).T) / 2
    if (np.abs(dK) <= 1e-12 * np.abs(K).max()).all():
        return None
    linear = linearise(real, q)
    return lemma_of(linear, real.drives, dK, farthest=FARTHEST, basis=plant.basis)
