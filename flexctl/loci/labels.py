"""Which joint, spring or mode of a line a branch of eigenvalues is, along its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse.csgraph import connected_components

from flexctl.checks import Array, ComplexArray
from flexctl.loci.branches import Branches
from flexctl.loop import ModeNames


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Shares of named motions in every branch.

    Attributes
    ----------
    s
        The parameter (k,).
    names
        Of motions (p,): joints, rotors, modes of lines, states of the law.
    shares
        Share [-] of every motion in every branch along the parameter (k, p, n); they sum to one.
    """

    s: Array
    names: tuple[str, ...]
    shares: Array

    @cached_property
    def mean(self) -> Array:
        """Shares (p, n) over the whole range, equal lengths of the parameter counting alike."""
        width = np.diff(self.s)[:, None, None]
        between = (self.shares[1:] + self.shares[:-1]) / 2
        return (width * between).sum(axis=0) / width.sum()

    def participation(self, branch: int) -> dict[str, float]:
        """Shares of a branch over the whole range, largest first, those above one in a thousand."""
        own = self.mean[:, branch]
        order = np.argsort(-own, kind="stable")
        return {self.names[k]: float(own[k]) for k in order if own[k] > _MENTIONED}

    @property
    def leaders(self) -> tuple[tuple[str, ...], ...]:
        """Motion with the largest share in each branch (n,), several where they are about equal."""
        return tuple(_leaders(self.names, own) for own in self.mean.T)

    def changes(self, branch: int) -> tuple[tuple[float, str], ...]:
        """Where (s) which motion takes the lead in a branch, from the beginning on.

        It does when its share is a tenth above that of the one that led.
        """
        shares = self.shares[:, :, branch]
        leader = int(shares[0].argmax())
        changes = [(float(self.s[0]), self.names[leader])]
        for k in range(1, len(shares)):
            now, before = shares[k], shares[k - 1]
            if now.max() > _LEAD * now[leader]:
                new = int(now.argmax())
                gains = [share[new] - _LEAD * share[leader] for share in (before, now)]
                at = float(np.interp(0.0, gains, self.s[k - 1 : k + 1]))
                leader = new
                changes.append((at, self.names[leader]))
        return tuple(changes)


_MENTIONED = 1e-3
_LEAD = 1.1
_BETWEEN = 5  # nodes between two points of the grid, which are dense where branches veer
_SAME = 1e-9


def _leaders(names: tuple[str, ...], shares: Array) -> tuple[str, ...]:
    return tuple(name for name, x in zip(names, shares, strict=True) if x * _LEAD >= shares.max())


def label_branches(branches: Branches, names_at: Callable[[float], ModeNames]) -> Labels:
    """Find the shares of named motions in every branch.

    The share of a state k in an eigenvalue is |w_k v_k| over the sum of all, w and v being its left
    and right eigenvectors; that of a motion is the sum over its states. Of eigenvalues that are
    followed together it is the same of the diagonal of the projector on their subspace, so that
    each has the shares of all of them. They are found on the grid, and at a few nodes between
    two of its points where another motion takes the lead in a branch.

    Parameters
    ----------
    branches
        Of a loop with N states.
    names_at
        Names and amplitudes of the N states at a parameter, the same names everywhere.
    """
    entries = names_at(float(branches.s[0])).names
    names = tuple(dict.fromkeys(entries))
    belongs = np.array([[entry == name for entry in entries] for name in names], dtype=float)

    def shares(k: int) -> Array:
        T = names_at(float(branches.s[k])).T
        return belongs @ _shares(T, *branches.vectors(k), branches.together[k])

    known = {k: shares(k) for k in branches.on_grid.tolist()}
    leads = {k: own * _LEAD >= own.max(axis=0) for k, own in known.items()}
    for first, last in pairwise(list(known)):
        if (leads[first] != leads[last]).any():
            few = np.linspace(first + 1, last - 1, min(last - first - 1, _BETWEEN)).astype(int)
            known |= {k: shares(k) for k in few.tolist()}
    at = sorted(known)
    return Labels(s=branches.s[at], names=names, shares=np.array([known[k] for k in at]))


def _shares(
    T: Array, V: ComplexArray, W: ComplexArray, together: tuple[tuple[int, ...], ...]
) -> Array:
    """Shares (N, n) of the states y = T^-1 x."""
    products = np.linalg.solve(T, V) * (T.T @ W).conj()
    for members in map(list, together):
        products[:, members] = products[:, members].sum(axis=1, keepdims=True)
    shares = np.abs(products)
    return shares / shares.sum(axis=0)


def numbers(branches: Branches, labels: Labels) -> tuple[int, ...]:
    """Numbers (n,) that tell branches with the same leaders apart, slow ones first; 0 of one alone.

    Both halves of a pair share one, as do eigenvalues that are one at the beginning.
    """
    leaders, groups = labels.leaders, _groups(branches)
    numbered = [0] * len(leaders)
    for names in set(leaders):
        own = [members for members in groups if leaders[members[0]] == names]
        own.sort(key=lambda members: abs(branches.values[0, members[0]]))
        for k, members in enumerate(own if len(own) > 1 else []):
            for branch in members:
                numbered[branch] = k + 1
    return tuple(numbered)


def _groups(branches: Branches) -> list[list[int]]:
    """Find the sets of branches that begin as one, up to conjugation."""
    first = branches.values[0]
    same = np.abs(first.conj()[:, None] - first) <= _SAME * np.abs(first)
    same |= np.eye(len(first), dtype=bool)
    for members in branches.together[0]:
        same[np.ix_(members, members)] = True
    count, group = connected_components(same, directed=False)
    return [np.flatnonzero(group == k).tolist() for k in range(count)]
