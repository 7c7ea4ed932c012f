"""The search for the smallest norm: from several stable loops briefly, from the best to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Literal

import numpy as np

from flexctl.checks import Array
from flexctl.errors import DesignError
from flexctl.search.nonsmooth import Functions, Minimum, Pieces, Progress, minimise
from flexctl.search.synthesis.coalescence import coalesce
from flexctl.search.synthesis.eigenvalues import (
    Sensitive,
    abscissa_pieces,
    excess_pieces,
    radius_pieces,
)
from flexctl.search.synthesis.fixed_modes import can_place_all
from flexctl.search.synthesis.gramians import h2_pieces
from flexctl.search.synthesis.interconnection import Interconnection, System
from flexctl.search.synthesis.peaks import Response, find_peaks, pieces_at
from flexctl.search.synthesis.riccati_controller import riccati_gain
from flexctl.search.synthesis.stability_search import (
    StabilitySearch,
    affordable,
    random_starts,
    variable_sizes,
)
from flexctl.search.synthesis.starts import make_decaying_starts, typical_rate
from flexctl.search.synthesis.structures import ControllerStructure

Norm = Literal["hinf", "h2", "abscissa"]

_BRIEF, _LONG = 250, 1200  # evaluations from each start, and from the best
_CHEAP = 1500  # of the H2 norm, a tenth as long as those of the largest peak
_MOST_STARTS = 200  # from which a stable loop is sought
_MOST_RESCALINGS = 4  # further descents of one search, each with new scales
_RESCALED_FROM = 5.0  # factor by which the size of a free number, or the norm, has changed
_SMALL = 1e-3  # least size of a free number, relative to that at which it moves eigenvalues
_SAME = 1e-9  # relative: a norm that is no worse
_FINAL = 2  # starts from which the search goes on to the end
_FAR = 2.0  # of the best: what is worse by more is left there
_DEPTHS = (1.0, 0.3, 0.1)  # of edges below the largest eigenvalue, relative to it
_STRETCH = 60  # evaluations of the sum above an edge
_ROUNDS, _WORTH = 4, 1e-3  # of coalescing eigenvalues, while they gain that much
_FASTEST = 1e4  # of the typical rate: a spectral abscissa that falls so far has no minimum
_GROWN = 1e4  # of the size of a free number
_DECAYS = (1.0, 10.0, 100.0)  # of the typical rate: tried where the spectral abscissa is minimised
_SAMPLED_DECAYS = (0.3, 1.0, 3.0)  # the same in one sample
_BEGIN = 0.1  # of the typical rate: decay to which random starts are brought
_FEW = 4  # free numbers that are also searched on a grid, if all have bounds
_PLACES = 128  # points of this grid for each of them
_APART = 0.25  # of the distance between bounds: points that may have different minima nearby
_SLOW = 0.02  # of the typical rate: a decay below which the stability constraint is looked at


class NormSearch:
    """The norm of a loop over the free numbers of a structure."""

    def __init__(
        self, loop: Interconnection, structure: ControllerStructure, kind: Norm, decay: float
    ) -> None:
        self.kind: Norm = kind
        self.loop, self.structure, self.decay = loop, structure, decay
        self.rate = typical_rate(loop.A, loop.sampled)
        self.spectrum = radius_pieces if loop.sampled else abscissa_pieces
        self.edge = float(np.exp(-decay)) if loop.sampled else -decay
        self.fastest = -np.inf if loop.sampled else -_FASTEST * self.rate
        self.evaluations = 0
        self._peaks: list[float] = []

    @property
    def functions(self) -> Functions:
        """What is minimised."""
        return self._of_spectrum if self.kind == "abscissa" else self._of_norm

    def _of_spectrum(self, x: Array) -> Pieces:
        K = self.structure.gain(x)
        return self._pieces(K, self.spectrum(self.loop.closed(K).A))

    def _of_norm(self, x: Array) -> Pieces:
        """Return the norm where the loop is stable; where it is slow, the spectrum is limited."""
        K = self.structure.gain(x)
        system = self.loop.closed(K)
        roots = self.spectrum(system.A, window=0.0)
        top, n = roots.largest, len(self.structure.names)
        if not top < (1.0 if self.loop.sampled else 0.0):
            return Pieces.of(np.array([np.inf]), np.zeros(n))
        found = self._pieces(K, self.norm_of(system))
        if top < self.edge - _SLOW * self.rate:
            return found
        limit = self._pieces(K, roots)
        return replace(
            found,
            constraints=(limit.values - self.edge) / self.rate,
            constraint_gradients=limit.gradients / self.rate,
        )

    def norm_of(self, system: System) -> Sensitive:
        """Return the norm: H-infinity peaks are sought first where those of the last loop were."""
        if self.kind == "hinf":
            response = Response(system)
            self._peaks = find_peaks(response, self._peaks)
            return pieces_at(response, self._peaks)
        if not system.sampled:  # feedthrough is round-off, or of no account for a first descent
            system = replace(system, D=np.zeros_like(system.D))
        return h2_pieces(system)

    def _pieces(self, K: Array, found: Sensitive) -> Pieces:
        if not np.isfinite(found.largest):
            return Pieces.of(np.array([np.inf]), np.zeros(len(self.structure.names)))
        slopes = self.loop.slopes(K, found.sensitivities)
        return Pieces.of(found.values, self.structure.chain(slopes))

    def run(
        self,
        given: Array | None,
        starts: int,
        seed: int,
        callback: Callable[[Progress], bool | None] | None,
    ) -> tuple[Minimum, int]:
        """Minimise briefly from every stable start, then to the end from the best."""
        brief, stopped = list[Minimum](), False

        def told(progress: Progress) -> bool:
            nonlocal stopped
            stopped = bool(callback and callback(progress))
            return stopped

        extra = int(bool(self._decays))  # beside the others: it begins with large gains
        points, search = self._stable_points(given, seed)
        for x in points:
            brief.append(self._descend(x, _BRIEF, seed, told, certify=False))
            if stopped or len(brief) >= starts + extra:
                break
        for x in () if stopped else self._places(starts):
            brief.append(self._descend(x, _BRIEF, seed, told, certify=False))
            if stopped:
                break
        if not brief:
            best = f", the best has {search.best.objective:.3g}" if search.best else ""
            what = "radius" if self.loop.sampled else "abscissa [1/s]"
            raise DesignError(
                f"synthesise: no stable loop found from {search.starts} starts{best} as spectral "
                f"{what}; try a larger order or structure, or start from a stable loop"
            )
        self.evaluations += search.evaluations
        brief.sort(key=_merit)
        promising = brief[: _FINAL + extra]
        if self.kind == "hinf" and not stopped:
            more = [self._from_h2_norm(brief[0].x, seed, told)]
            if not stopped:
                more += self._from_riccati_equations(brief[0].objective, seed, told)
            promising += [one for one in more if _merit(one) < _merit(promising[-1])]
        if self._endless:
            return replace(brief[0], status="stopped" if stopped else "target"), search.starts
        if self.kind == "abscissa" and not stopped:
            promising = [one if stopped else self._sink(one, seed, told) for one in promising]
            promising = sorted(promising, key=_merit)[:1]
        best = min(promising, key=_merit)
        promising = [one for one in promising if not _merit(one) > _far(best)]
        found = [best] if stopped else []
        for one in promising:
            if not stopped:
                found.append(self._finish(one.x, seed, told))
        best = min(found, key=_merit)
        if self.kind == "abscissa" and not stopped and best.status != "target":
            self._coalesce(found, seed, told)
        best = min(found, key=_merit)
        if self.kind == "abscissa" and best.status == "stationary" and self._grown(best.x):
            best = replace(best, status="stalled")  # slopes vanish as gains grow
        return best, search.starts

    @property
    def _endless(self) -> bool:
        """Whether a spectral abscissa surely falls as far as gains grow."""
        may = self.kind == "abscissa" and not self.loop.sampled
        return may and can_place_all(self.loop, self.structure)

    def _grown(self, x: Array) -> bool:
        """Whether free numbers (n,) are far larger than those that move eigenvalues."""
        return bool((np.abs(x) > _GROWN * variable_sizes(self.loop, self.structure)).any())

    def _from_h2_norm(
        self, x: Array, seed: int, callback: Callable[[Progress], bool | None]
    ) -> Minimum:
        """Descend briefly in the H2 norm, which is smooth, and from there in the largest peak.

        A descent in the largest of many peaks may stall early.
        """
        smooth = NormSearch(self.loop, self.structure, "h2", self.decay)
        near = smooth._descend(x, _CHEAP, seed, lambda _: False, certify=False)
        self.evaluations += smooth.evaluations
        return self._descend(near.x, _BRIEF, seed, callback, certify=False)

    def _from_riccati_equations(
        self, norm: float, seed: int, callback: Callable[[Progress], bool | None]
    ) -> list[Minimum]:
        """Descend briefly from the controller of full order, as far as the structure allows it."""
        K = riccati_gain(self.loop.without_through(), norm)
        if K is None:
            return []
        x = self.structure.nearest(self.loop.behind(K))
        if not np.isfinite(self.functions(x).objective):
            return []
        return [self._descend(x, _BRIEF, seed, callback, certify=False)]

    def _sink(
        self, best: Minimum, seed: int, callback: Callable[[Progress], bool | None]
    ) -> Minimum:
        """Minimise the sum of what eigenvalues are above a lower edge, and the largest, in turn.

        Descent of the largest stalls where eigenvalues meet; the sum leads on.
        """
        depths = [*_DEPTHS]
        while depths and best.status != "target":
            edge = best.objective - depths[0] * abs(best.objective)

            def above(x: Array, edge: float = edge) -> Pieces:
                K = self.structure.gain(x)
                return self._pieces(
                    K, excess_pieces(self.loop.closed(K).A, edge, self.loop.sampled)
                )

            over = self._descend(
                best.x, _STRETCH, seed, lambda _: False, certify=False, functions=above
            )
            again = self._descend(over.x, _BRIEF, seed, callback, certify=False)
            if again.status == "stopped":
                return min(best, again, key=_merit)
            if again.objective < best.objective - _WORTH * abs(best.objective):
                best, depths = again, [*_DEPTHS]
            else:
                depths.pop(0)
        return best

    def _coalesce(
        self, found: list[Minimum], seed: int, callback: Callable[[Progress], bool | None]
    ) -> None:
        """Add what is found where eigenvalues coalesce, while that is better."""
        for _ in range(_ROUNDS):
            best = min(found, key=lambda one: one.objective)
            scale = variable_sizes(self.loop, self.structure)
            trials = coalesce(self.loop, self.structure, best.x, scale)
            self.evaluations += sum(one.evaluations for one in trials)
            points = sorted((one.x for one in trials), key=lambda x: self.functions(x).objective)
            for x in points[:_FINAL]:
                found.append(self._descend(x, _BRIEF, seed, callback, certify=True))
            after = min(one.objective for one in found)
            if after > best.objective - _WORTH * abs(best.objective):
                return

    def _stable_points(
        self, given: Array | None, seed: int
    ) -> tuple[Iterator[Array], StabilitySearch]:
        """Yield stable points: of the given start, then of all others."""
        loop, random = self.loop, np.random.default_rng(seed)
        aim = _BEGIN * self.rate
        search = StabilitySearch(
            loop, self.structure, float(np.exp(-aim)) if loop.sampled else -aim
        )
        n = len(loop.A) + loop.order

        def points() -> Iterator[Array]:
            if given is not None:
                value = search.spectrum(given).objective
                if value < search.edge:
                    yield given
                else:
                    yield from (one.x for one in search.run([given], affordable(n)))
            if self._decays:
                yield from self._decaying_point(search, np.random.default_rng(seed))
            others = islice(random_starts(loop, self.structure, random), _MOST_STARTS)
            yield from (one.x for one in search.run(others, affordable(n)))

        return points(), search

    def _places(self, most: int) -> Iterator[Array]:
        """Yield the best stable points (n,) of a grid between the bounds, some distance apart.

        Only of few free numbers that all have bounds. Stable loops may lie in several separate
        regions, which local searches do not leave.
        """
        lower, upper = self.structure.lower, self.structure.upper
        n = len(lower)
        if n > _FEW or not np.isfinite(upper - lower).all() or not (upper > lower).all():
            return
        u = _evenly(n, _PLACES * n)
        found = [self.functions(x) for x in lower + u * (upper - lower)]
        self.evaluations += len(found)
        values = np.array([np.inf if one.violation > 0 else one.objective for one in found])
        chosen, unstable = list[Array](), np.inf
        if self.kind == "abscissa":
            unstable = 1.0 if self.loop.sampled else 0.0
        for k in np.argsort(values).tolist():
            if not values[k] < unstable or len(chosen) >= most:
                return
            if all(np.abs(u[k] - other).max() > _APART for other in chosen):
                chosen.append(u[k])
                yield lower + u[k] * (upper - lower)

    @property
    def _decays(self) -> list[float]:
        """Decays that are tried by designs, where more is wanted than random starts come to."""
        if self.kind == "abscissa":
            decays = _SAMPLED_DECAYS if self.loop.sampled else _DECAYS
            return [self.rate * decay for decay in decays]
        return [self.decay] if self.decay > _BEGIN * self.rate else []

    def _decaying_point(
        self, search: StabilitySearch, random: np.random.Generator
    ) -> Iterator[Array]:
        """Yield what the structure allows of the best design with a wanted decay, if stable."""
        points = [
            self.structure.nearest(self.loop.behind(K))
            for decay in self._decays
            for K in make_decaying_starts(self.loop.without_through(), decay, random)
        ]
        values = [search.spectrum(x).objective for x in points]
        best = int(np.argmin(values))
        if values[best] < search.edge:
            yield points[best]

    def _finish(self, x: Array, seed: int, callback: Callable[[Progress], bool | None]) -> Minimum:
        """Descend to the end; again with new scales while a free number or the norm changes much.

        What is stationary is measured in these scales. A search that stalled or ran out of
        evaluations is not begun again, as that takes long.
        """
        found, used = self._descend(x, _LONG, seed, callback, certify=True), self._sizes(x)
        if self.kind == "abscissa":
            return found
        least = _SMALL * variable_sizes(self.loop, self.structure)
        for _ in range(_MOST_RESCALINGS):
            sizes = np.maximum(np.abs(found.x), least)
            changes = [*(sizes / used), *(used / sizes)]
            fallen = found.history[0].objective / max(found.objective, np.finfo(float).tiny)
            if found.status != "stationary" or max(*changes, fallen) < _RESCALED_FROM:
                break
            again = self._descend(found.x, _BRIEF, seed, callback, certify=True, scale=sizes)
            if _merit(again) > (found.violation, found.objective * (1 + _SAME)):
                break
            found, used = again, sizes
        return found

    def _sizes(self, x: Array) -> Array:
        """Sizes of the free numbers (n,) in a search from x (n,)."""
        size = variable_sizes(self.loop, self.structure)
        return size if self.kind == "abscissa" else np.maximum(size, np.abs(x))

    def _descend(
        self,
        x: Array,
        evaluations: int,
        seed: int,
        callback: Callable[[Progress], bool | None],
        *,
        certify: bool,
        functions: Functions | None = None,
        scale: Array | None = None,
    ) -> Minimum:
        found = minimise(
            functions or self.functions,
            x,
            lower=self.structure.lower,
            upper=self.structure.upper,
            scale=self._sizes(x) if scale is None else scale,
            unit=self.rate if self.kind == "abscissa" else None,
            evaluations=evaluations,
            target=self.fastest if self.kind == "abscissa" else -np.inf,
            certify=certify,
            seed=seed,
            callback=callback,
        )
        self.evaluations += found.evaluations
        return found


def _far(best: Minimum) -> tuple[float, float]:
    """Return the merit from which on the search does not go on to the end."""
    return best.violation, best.objective + _FAR * abs(best.objective)


def _merit(found: Minimum) -> tuple[float, float]:
    return found.violation, found.objective


def _evenly(n: int, count: int) -> Array:
    """Points (count, n) between 0 and 1, spread evenly: multiples of irrational steps."""
    ratio = 2.0
    for _ in range(60):  # x^(n + 1) = x + 1
        ratio = (1 + ratio) ** (1 / (n + 1))
    steps = ratio ** -np.arange(1.0, n + 1)
    return (0.5 + np.outer(np.arange(1, count + 1), steps)) % 1.0
