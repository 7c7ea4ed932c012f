"""The lemma for errors that are not proportional to the stiffness: of one part, or of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from flexctl.checks import Array
from flexctl.model import Arm
from flexctl.plant import Plant, StiffnessError, assemble_plant, linearise
from flexctl.robustness.stiffness.lemma import Lemma, lemma_of

FARTHEST = 10.0  # largest error of a part at which flutter is searched


def lemma_by_part(plant: Plant, q: Array, groups: Mapping[str, Sequence[int]]) -> dict[str, Lemma]:
    """Evaluate the lemma of [TG95], 4.3, for errors of single parts of the stiffness, by name.

    Parameters
    ----------
    plant
        The controller's model without errors of its stiffness.
    q
        Coordinates (n,) whose joint variables give the pose.
    groups
        Indices of `Plant.stiffness_parts` that share one relative error, by name.
    """
    count, lemma = len(plant.stiffness_parts), _by_errors(plant, q)
    chosen = {name: np.isin(np.arange(count), indices) for name, indices in groups.items()}
    return {name: lemma(part.astype(float)) for name, part in chosen.items()}


def lemma_of_errors(plant: Plant, q: Array, errors: Array) -> Lemma:
    """Evaluate the lemma of [TG95], 4.3, for errors K_hat/K - 1 of all parts at once.

    `alpha_star` is the factor t of the errors at which the flexible block becomes unstable; flutter
    is searched until the largest error is `FARTHEST`.

    Parameters
    ----------
    plant, q
        As in `lemma_by_part`.
    errors
        Relative error of each of `Plant.stiffness_parts` (p,) [-].
    """
    return _by_errors(plant, q, FARTHEST / np.abs(errors).max())(errors)


def _by_errors(plant: Plant, q: Array, farthest: float = FARTHEST) -> Callable[[Array], Lemma]:
    """Return the lemma at q (n,) as a function of errors (p,) of the stiffness."""
    linear = linearise(plant, q)
    unknown = replace(plant, stiffness_error=StiffnessError(values=None))
    stiffness = unknown.casadi_functions["elastic_stiffness"]

    def lemma(errors: Array) -> Lemma:
        dK = np.array(stiffness(linear.q0, errors)) - np.array(stiffness(linear.q0, 0 * errors))
        dK = (dK + dK.T) / 2
        return lemma_of(linear, plant.drives, dK, farthest=farthest, basis=plant.basis)

    return lemma


def lemma_of_true_arm(plant: Plant, arm: Arm, q: Array) -> Lemma | None:
    """Evaluate the lemma for the difference of a model's stiffness from that of the true arm.

    dK = K_hat - K with K_hat of `plant`; K and the masses are those of `arm` in the same shapes,
    for example measured where the model's are computed. An `alpha_star` above 1 means that the
    lemma allows this error. None where dK is zero within round-off.

    Parameters
    ----------
    plant
        The controller's model.
    arm
        The true arm.
    q
        Coordinates (n,) whose joint variables give the pose.
    """
    truth = assemble_plant(arm, plant.basis, interpreted=True)
    K_hat, K = plant.elastic_stiffness(q), truth.elastic_stiffness(q)
    dK = (K_hat - K + (K_hat - K).T) / 2
    if (np.abs(dK) <= 1e-12 * np.abs(K).max()).all():
        return None
    linear = linearise(truth, q)
    return lemma_of(linear, truth.drives, dK, farthest=FARTHEST, basis=plant.basis)
