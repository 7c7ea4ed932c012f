"""States of a vibrating system in units in which a Riccati solver copes with it."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from flexctl.checks import Array


def modal_scaling(M: Array, K: Array, slowest: float = 0.0) -> tuple[Array, Array]:
    """T (2n, 2n) and its inverse: [q; q'] = T y, y being of one size in modes of equal energy.

    Deflections and rates of fine meshes differ by 1e5 in size, with which no Riccati solver
    copes; modal displacements times their frequency and modal rates are of one size.

    Parameters
    ----------
    M, K
        Mass, positive definite, and stiffness (n, n), both symmetric.
    slowest
        Scale [rad/s] of motions slower than that, such as those that no stiffness holds.
    """
    w_squared, Phi = scipy.linalg.eigh(K, M)
    w = np.sqrt(np.maximum(np.abs(w_squared), max(slowest**2, np.finfo(float).tiny)))
    to_modes, none = Phi.T @ M, np.zeros_like(Phi)
    T = np.block([[Phi / w, none], [none, Phi]])
    return T, np.block([[w[:, None] * to_modes, none], [none, to_modes]])
