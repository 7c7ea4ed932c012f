"""Minima of the spectral abscissa at which eigenvalues coalesce: found with smooth functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.search.nonsmooth import Minimum, Pieces, minimise
from flexctl.search.synthesis.clusters import Cluster, measure_clusters, partitions
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.starts import typical_rate
from flexctl.search.synthesis.structures import ControllerStructure

_MOST = 8  # ways to group the eigenvalues
_EVALUATIONS = 500


@dataclass(frozen=True, kw_only=True)
class Coalescence:
    """Largest mean of clusters of eigenvalues, where every cluster is one multiple eigenvalue.

    Near a minimum with m equal eigenvalues these are moved by the m-th root of a step, and every
    method that looks at them one by one stalls. The means are smooth.
    """

    loop: Interconnection
    structure: ControllerStructure
    clusters: tuple[Cluster, ...]

    def __call__(self, x: Array) -> Pieces:
        """Means as pieces of the objective, central moments as constraints of both signs."""
        K = self.structure.gain(x)
        A = self.loop.closed(K).A
        found = measure_clusters(A, self.clusters, self.loop.sampled)
        slopes = [
            self.structure.chain(self.loop.slopes(K, part))
            for part in (found.of_means, found.of_moments)
        ]
        return Pieces.of(
            found.means,
            slopes[0],
            np.r_[found.moments, -found.moments],
            np.vstack([slopes[1], -slopes[1]]),
        )


def coalesce(
    loop: Interconnection, structure: ControllerStructure, x: Array, scale: Array
) -> list[Minimum]:
    """Minimise from x (n,) for every way in which its eigenvalues may be grouped."""
    found = []
    for clusters in partitions(loop.closed(structure.gain(x)).A, _MOST):
        if max(one.size for one in clusters) > 1:
            functions = Coalescence(loop=loop, structure=structure, clusters=clusters)
            found.append(
                minimise(
                    functions,
                    x,
                    lower=structure.lower,
                    upper=structure.upper,
                    scale=scale,
                    unit=typical_rate(loop.A, loop.sampled),
                    tolerance=1e-9,
                    clearance=0.0,
                    evaluations=_EVALUATIONS,
                    certify=False,
                )
            )
    return found
