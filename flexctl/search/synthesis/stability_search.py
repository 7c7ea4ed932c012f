"""The search for stable loops: spectra minimised briefly from many starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError
from flexctl.search.nonsmooth import Functions, Minimum, Pieces, minimise
from flexctl.search.synthesis.eigenvalues import (
    Sensitive,
    abscissa_pieces,
    excess_pieces,
    radius_pieces,
)
from flexctl.search.synthesis.fixed_modes import fixed_decay
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.one_gain import gains_between_crossings
from flexctl.search.synthesis.starts import make_starts, typical_gain, typical_rate
from flexctl.search.synthesis.structures import ControllerStructure

CLEAR = 1e-7  # of the typical rate: nearer to the axis round-off may decide
_OF_FIXED = 0.5  # of the decay of a mode that no feedback moves, where that is slower
_BRIEF = 300  # evaluations from each start
_PLAIN = 12  # starts before the sum over all eigenvalues is tried
# how far left the sum wants all eigenvalues: of the typical rate; of the unit circle's radius
_DEPTHS, _SAMPLED_DEPTHS = (3.0, 1.0, 0.1), (0.9, 0.5, 0.1)
_SINGLE = 12  # single gains from which the search goes on
_WINDOW = 0.1  # of the largest modulus: eigenvalues that are pieces


class StabilitySearch:
    """Looks for free numbers of a structure with which a loop is stable, from many starts."""

    def __init__(
        self, loop: Interconnection, structure: ControllerStructure, target: float
    ) -> None:
        """`target`: spectral abscissa [1/s], or radius, at which the search is content."""
        self.loop, self.structure, self.target = loop, structure, target
        self.edge = 1.0 if loop.sampled else 0.0
        self.rate = typical_rate(loop.A, loop.sampled)
        self.clear = clear_decay(loop, CLEAR)
        self.scale = variable_sizes(loop, structure)
        self.evaluations = self.starts = 0
        self.best: Minimum | None = None

    def spectrum(self, x: Array) -> Pieces:
        """Rightmost, or largest, eigenvalues of the loop."""
        measure = radius_pieces if self.loop.sampled else abscissa_pieces
        return self._pieces(x, lambda A: measure(A, window=_WINDOW))

    def excess(self, x: Array, turn: int) -> Pieces:
        """Sum of what all eigenvalues are above an edge, another one at every turn."""
        depths = _SAMPLED_DEPTHS if self.loop.sampled else _DEPTHS
        depth = depths[turn % len(depths)]
        edge = 1 - depth if self.loop.sampled else -depth * self.rate
        return self._pieces(x, lambda A: excess_pieces(A, edge, self.loop.sampled))

    def _pieces(self, x: Array, measure: Callable[[Array], Sensitive]) -> Pieces:
        K = self.structure.gain(x)
        found = measure(self.loop.closed(K).A)
        slopes = self.structure.chain(self.loop.slopes(K, found.sensitivities))
        return Pieces.of(found.values, slopes)

    def run(self, starts: Iterable[Array], most: int) -> Iterator[Minimum]:
        """Yield stable points as they are found, until `most` evaluations are spent.

        The sum over all eigenvalues is minimised before the largest of every other random start:
        either finds controllers that the other misses.
        """
        for x in starts:
            if self.evaluations >= most:
                return
            self.starts += 1
            if self.starts > _PLAIN and self.starts % 2:
                turn = self.starts // 2
                x = self._descend(lambda x, turn=turn: self.excess(x, turn), x, 1e-9 * self.rate).x  # noqa: PLW2901
            found = self._descend(self.spectrum, x, self.target)
            if self.best is None or found.objective < self.best.objective:
                self.best = found
            if found.objective < self.edge - self.clear:
                yield found

    def _descend(self, functions: Functions, x: Array, target: float) -> Minimum:
        found = minimise(
            functions,
            x,
            lower=self.structure.lower,
            upper=self.structure.upper,
            scale=self.scale,
            unit=self.rate,
            target=target,
            evaluations=_BRIEF,
            certify=False,
        )
        self.evaluations += found.evaluations
        return found


def clear_decay(loop: Interconnection, share: float) -> float:
    """Return a share of the typical rate, [1/s] or in one sample, or less where no loop has more.

    A stable mode that no feedback moves may be slower: that of a weight that nearly integrates.
    """
    wanted = share * typical_rate(loop.A, loop.sampled)
    return min(wanted, _OF_FIXED * fixed_decay(loop, wanted / _OF_FIXED))


def variable_sizes(loop: Interconnection, structure: ControllerStructure) -> Array:
    """Size of each free number (n,) at which it moves eigenvalues by their own size."""
    entries = np.abs(structure.directions) / np.maximum(typical_gain(loop), 1e-300)
    largest = entries.reshape(len(structure.names), -1).max(axis=1)
    return 1 / np.maximum(largest, 1e-300)


def random_starts(
    loop: Interconnection, structure: ControllerStructure, random: np.random.Generator
) -> Iterator[Array]:
    """Yield free numbers: those of designs without structure as far as it allows, then random.

    The designs know nothing of a feedthrough of the plant: they are effective gains. Of a single
    static gain the best between any two that make an eigenvalue cross the axis come next.
    """
    size = variable_sizes(loop, structure)
    box = structure.lower, structure.upper
    for K in make_starts(loop, random):
        yield structure.nearest(loop.behind(K))
    if loop.shape == (1, 1):
        for k in best_single_gains(loop)[0]:
            yield structure.nearest(loop.behind(np.array([[k]])))
    while True:
        x = size * random.standard_normal(size.shape) * 10 ** random.uniform(-2, 1.5)
        yield np.clip(x, *box)


def best_single_gains(loop: Interconnection) -> tuple[Array, float]:
    """Try static gains of a plant with one u and one y: the best ones, and what the best reaches.

    At least one lies in every interval of gains with as many unstable eigenvalues: where none of
    them is stable, no gain is. The value is the spectral abscissa, or the radius of a sampled loop.
    """
    gains = np.concatenate(gains_between_crossings(loop))
    measure = np.abs if loop.sampled else np.real
    values = np.array(
        [measure(np.linalg.eigvals(loop.A + k * loop.B @ loop.C)).max() for k in gains]
    )
    order = np.argsort(values, kind="stable")
    return gains[order][:_SINGLE], float(values[order[0]])


def require_single_gain(loop: Interconnection, who: str) -> None:
    """Refuse a plant with one u and one y that no static gain makes stable, with DesignError."""
    best = best_single_gains(loop)[1]
    if best >= (1.0 if loop.sampled else 0.0):
        least = "modulus of an eigenvalue" if loop.sampled else "spectral abscissa"
        raise DesignError(
            f"{who}: no static gain makes the loop stable: the eigenvalues were counted between "
            f"all gains at which one may cross the limit (the least {least} is {best:.3g}); "
            "try order 1"
        )


def affordable(n: int) -> int:
    """Spectra of n by n matrices computed in about eight seconds, at least one."""
    return max(1, int(8 / (0.25e-3 + 3.2e-3 * (n / 55) ** 2.2)))


def spectral_abscissa(eigenvalues: ComplexArray, sample_time: float | None) -> float:
    """Spectral abscissa [1/s], of a sampled loop by ln|z|/T."""
    if sample_time is None:
        return float(eigenvalues.real.max())
    with np.errstate(divide="ignore"):
        return float(np.log(np.abs(eigenvalues).max()) / sample_time)
