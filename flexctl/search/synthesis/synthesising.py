"""Controllers of a given structure with the smallest norm, or the farthest left spectrum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError, InputError
from flexctl.records import Summary
from flexctl.robustness import certify
from flexctl.search.nonsmooth import Functions, Minimum, Pieces, Progress, minimise
from flexctl.search.synthesis.coalescence import coalesce
from flexctl.search.synthesis.eigenvalues import Sensitive, abscissa_pieces, radius_pieces
from flexctl.search.synthesis.feedthrough import forbid_feedthrough
from flexctl.search.synthesis.generalised_plant import Channels, GeneralisedPlant, read_plant
from flexctl.search.synthesis.gramians import h2_pieces
from flexctl.search.synthesis.interconnection import Interconnection, System
from flexctl.search.synthesis.peaks import hinf_pieces
from flexctl.search.synthesis.stabilising import (
    StabilitySearch,
    affordable,
    random_starts,
    spectral_abscissa,
    variable_sizes,
)
from flexctl.search.synthesis.starts import typical_rate
from flexctl.search.synthesis.structures import ControllerStructure

Norm = Literal["hinf", "h2", "abscissa"]
Structure = ControllerStructure | int | Sequence[Sequence[Any]] | Array

_NORMS: Mapping[str, Callable[[System], Sensitive]] = {"hinf": hinf_pieces, "h2": h2_pieces}
_BRIEF, _LONG = 250, 1200  # evaluations from each start, and from the best
_FINAL = 2  # starts from which the search goes on to the end
_ROUNDS, _WORTH = 4, 1e-3  # of coalescing eigenvalues, while they gain that much
_SLOW = 0.02  # of the typical rate: a decay below which the stability constraint is looked at
_DECAY = 1e-6  # of the typical rate


@dataclass(frozen=True, kw_only=True, repr=False)
class Synthesis(Summary):
    """A controller u = K y of a given structure, with what is known of its norm.

    Attributes
    ----------
    controller
        `control.StateSpace` from y to u.
    closed_loop
        `control.StateSpace` from w to z.
    kind
        ``hinf``, ``h2`` or ``abscissa``: what was minimised.
    norm
        Its value: of the closed loop from w to z, or the spectral abscissa [1/s].
    spectral_abscissa
        Of the closed loop [1/s]; of a sampled one ln|z|/T.
    parameters
        The free numbers by name.
    gain
        [Dk Ck; Bk Ak], (m + k, p + k).
    eigenvalues
        Of the closed loop (n + k,), [rad/s] or z.
    stationarity, radius
        How far the answer is from locally optimal: the norm of the smallest combination of
        gradients gathered within a radius, in free numbers each divided by its own size (that
        where the search started, or at which it moves eigenvalues by their own size).
    status
        ``stationary``, or why the search ended before (`stalled`, `limit`, `stopped`).
    evaluations, starts
        Norms and spectra computed, and starts tried.
    history
        Best values so far, (evaluations, norm), of the search that ended best.

    Examples
    --------
    >>> import control, flexctl
    >>> plant = control.ss([[1.0]], [[1.0, 1.0]], [[1.0], [0.0], [1.0]],
    ...                    [[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # x' = x + w + u, z = (x, u)
    >>> found = flexctl.synthesise(plant, 0, norm="h2", nmeas=1, ncon=1)
    >>> f"{found.parameters['D[1,1]']:.4f}"  # of the Riccati equation: -(1 + sqrt(2))
    '-2.4142'
    """

    controller: Any
    closed_loop: Any
    kind: Norm
    norm: float
    spectral_abscissa: float
    parameters: dict[str, float]
    gain: Array
    eigenvalues: ComplexArray
    stationarity: float
    radius: float
    status: str
    evaluations: int
    starts: int
    history: tuple[tuple[int, float], ...]

    @cached_property
    def certified(self) -> bool:
        """Whether stability is proven in interval arithmetic, computed when it is first asked.

        The proof holds for all loops whose state matrix differs by 1e-12 of each entry; False where
        there is no proof, which does not mean that the loop is unstable.
        """
        return certify(self.closed_loop.A, sample_time=self.sample_time).proven

    @property
    def sample_time(self) -> float | None:
        """T [s], 1 if the plant is sampled at no given rate, None if it is continuous."""
        dt = self.closed_loop.dt
        return None if not dt else 1.0 if dt is True else float(dt)

    def _facts(self) -> Mapping[str, Any]:
        shown = "norm spectral_abscissa parameters status stationarity evaluations"
        return {"kind": self.kind, **{name: getattr(self, name) for name in shown.split()}}


def synthesise(
    plant: Any,
    structure: Structure,
    norm: Norm = "hinf",
    *,
    nmeas: Channels | None = None,
    ncon: Channels | None = None,
    start: Any = None,
    decay: float | None = None,
    starts: int = 5,
    seed: int = 0,
    callback: Callable[[Progress], bool | None] | None = None,
) -> Synthesis:
    """Minimise a norm of a closed loop over controllers of a given structure.

    The closed loop is the plant (w, u) -> (z, y) with u = K y, as of `control.hinfsyn`. A stable
    loop is sought first, then the norm is minimised among stable ones, as a nonsmooth function with
    its exact derivatives, from several starts [ApkarianNoll06]. The answer is locally optimal:
    there is no proof that no other is better.

    Parameters
    ----------
    plant
        `control.StateSpace` or `TransferFunction`, continuous or discrete.
    structure
        The order of a controller with all entries free (0: static); a matrix (m, p) of True where a
        static gain is free, False where it is zero; a table of numbers (fixed) and names (free) of
        a static gain; or a `ControllerStructure`.
    norm
        ``hinf``, the largest singular value over all frequencies; ``h2``; or ``abscissa``, the
        largest real part of an eigenvalue [1/s], where w and z do not count.
    nmeas, ncon
        How many of the last outputs are y, and of the last inputs u; or their names, or indices.
        The size of the structure unless they are given.
    start
        A controller from which to search, besides others: K, or a `control.StateSpace`.
    decay
        The spectral abscissa is kept below -`decay` [1/s]; default 1e-6 of the typical rate.
    starts
        Stable loops from which the norm is minimised.
    seed
        Of the random starts: the same seed gives the same controller.
    callback
        Told the best point after every evaluation of the norm; ends the search by returning True.

    Raises
    ------
    InputError
        Where plant, channels and structure do not fit.
    DesignError
        Where no stable loop was found, or the H2 norm is infinite for all controllers.

    Examples
    --------
    PID of a double integrator, the sensitivity least with torques counted a tenth:

    >>> import control, flexctl
    >>> mass = control.ss([[0, 1], [0, 0]], [[0, 0], [1, 1]], [[1, 0], [0, 0], [-1, 0]],
    ...                   [[0, 0], [0, 0.1], [0, 0]])  # (w, u) -> (position, 0.1 u, -position)
    >>> pid = flexctl.ControllerStructure.pid(terms="PD", filter_time=0.1)
    >>> found = flexctl.synthesise(mass, pid, norm="h2")
    >>> sorted(found.parameters)
    ['Kd', 'Kp']
    >>> found.spectral_abscissa < 0
    True
    """
    if norm not in get_args(Norm):
        raise InputError(f"norm: expected {', '.join(get_args(Norm))}, got {norm!r}")
    if starts < 1:
        raise InputError(f"starts: expected at least 1, got {starts}")
    generalised, chosen = _read(plant, structure, nmeas, ncon)
    loop = generalised.interconnection(chosen.order)
    loop.require_shape(chosen.offset, "structure")
    if norm != "abscissa" and not (loop.B1.shape[1] and len(loop.C1)):
        raise InputError(f"plant: expected inputs w and outputs z for norm={norm!r}, got none")
    free = forbid_feedthrough(loop, chosen) if norm == "h2" and not loop.sampled else chosen
    period = generalised.period
    slowest = _DECAY * typical_rate(loop.A, loop.sampled) if decay is None else decay
    task = _Task(loop, free, norm, slowest * (period or 1.0))
    found, tried = task.run(_start_of(start, loop, free), starts, seed, callback)
    K = free.gain(found.x)
    return _record(generalised, task, K, chosen.named(chosen.nearest(K)), found, tried)


def _read(
    plant: Any, structure: Structure, nmeas: Channels | None, ncon: Channels | None
) -> tuple[GeneralisedPlant, ControllerStructure]:
    """Read plant and structure, each of which may tell the channels of the other."""
    if isinstance(structure, bool) or (isinstance(structure, int) and structure < 0):
        raise InputError(f"structure: expected an order of at least 0, got {structure!r}")
    if isinstance(structure, int | np.integer):
        generalised = read_plant(plant, nmeas, ncon)
        sizes = len(generalised.u), len(generalised.y)
        return generalised, ControllerStructure.full(*sizes, int(structure))
    if not isinstance(structure, ControllerStructure):
        mask = np.asarray(structure, dtype=object)
        if mask.ndim != 2:
            raise InputError("structure: expected an order, a table or a ControllerStructure")
        entries = mask.tolist()
        if all(isinstance(one, bool) for row in entries for one in row):
            structure = ControllerStructure.pattern(np.array(entries, dtype=bool))
        else:
            structure = ControllerStructure.table(entries)
    m, p = (size - structure.order for size in structure.offset.shape)
    return read_plant(plant, p if nmeas is None else nmeas, m if ncon is None else ncon), structure


def _start_of(start: Any, loop: Interconnection, structure: ControllerStructure) -> Array | None:
    """Free numbers nearest to a controller that the user has."""
    if start is None:
        return None
    if hasattr(start, "A") and hasattr(start, "D"):
        parts = [np.asarray(getattr(start, name), dtype=float) for name in "DCBA"]
        K = np.block([[parts[0], parts[1]], [parts[2], parts[3]]])
    else:
        K = np.atleast_2d(checks.finite("start", start))
    loop.require_shape(K, "start")
    return structure.nearest(K)


class _Task:
    """The norm of a loop over the free numbers of a structure."""

    def __init__(
        self, loop: Interconnection, structure: ControllerStructure, kind: Norm, decay: float
    ) -> None:
        self.kind: Norm = kind
        self.loop, self.structure, self.decay = loop, structure, decay
        self.rate = typical_rate(loop.A, loop.sampled)
        self.spectrum = radius_pieces if loop.sampled else abscissa_pieces
        self.edge = float(np.exp(-decay)) if loop.sampled else -decay
        self.evaluations = 0

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
        found = self._pieces(K, _NORMS[self.kind](system))
        if top < self.edge - _SLOW * self.rate:
            return found
        limit = self._pieces(K, roots)
        return replace(
            found,
            constraints=(limit.values - self.edge) / self.rate,
            constraint_gradients=limit.gradients / self.rate,
        )

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

        points, search = self._stable_points(given, seed)
        for x in points:
            brief.append(self._descend(x, _BRIEF, seed, told, certify=False))
            if stopped or len(brief) >= starts:
                break
        if not brief:
            best = f", the best has {search.best.objective:.3g}" if search.best else ""
            what = "radius" if self.loop.sampled else "abscissa [1/s]"
            raise DesignError(
                f"synthesise: no stable loop found from {search.starts} starts{best} as spectral "
                f"{what}; try a larger order or structure, or start from a stable loop"
            )
        brief.sort(key=lambda one: (one.violation, one.objective))
        found = brief[:1] if stopped else []
        for one in brief[:_FINAL]:
            if not stopped:
                found.append(self._descend(one.x, _LONG, seed, told, certify=True))
        if self.kind == "abscissa" and not stopped:
            self._coalesce(found, seed, told)
        self.evaluations += search.evaluations
        return min(found, key=lambda one: (one.violation, one.objective)), search.starts

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

    def _stable_points(self, given: Array | None, seed: int) -> tuple[Any, StabilitySearch]:
        """Yield stable points: of the given start, then of all others."""
        loop, random = self.loop, np.random.default_rng(seed)
        aim = 0.1 * self.rate
        search = StabilitySearch(
            loop, self.structure, float(np.exp(-aim)) if loop.sampled else -aim
        )
        n = len(loop.A) + loop.order

        def points() -> Any:
            if given is not None:
                value = search.spectrum(given).objective
                if value < search.edge:
                    yield given
                else:
                    yield from (one.x for one in search.run([given], affordable(n)))
            others = random_starts(loop, self.structure, random)
            yield from (one.x for one in search.run(others, affordable(n)))

        return points(), search

    def _descend(
        self,
        x: Array,
        evaluations: int,
        seed: int,
        callback: Callable[[Progress], bool | None],
        *,
        certify: bool,
    ) -> Minimum:
        size = variable_sizes(self.loop, self.structure)
        found = minimise(
            self.functions,
            x,
            lower=self.structure.lower,
            upper=self.structure.upper,
            scale=size if self.kind == "abscissa" else np.maximum(size, np.abs(x)),
            evaluations=evaluations,
            certify=certify,
            seed=seed,
            callback=callback,
        )
        self.evaluations += found.evaluations
        return found


def _record(
    plant: GeneralisedPlant,
    task: _Task,
    K: Array,
    parameters: dict[str, float],
    found: Minimum,
    starts: int,
) -> Synthesis:
    """Gather what is known of the answer."""
    loop = task.loop
    system = loop.closed(K)
    eigenvalues = np.linalg.eigvals(system.A).astype(complex)
    abscissa = spectral_abscissa(eigenvalues, plant.period)
    return Synthesis(
        controller=plant.controller(K, loop.order),
        closed_loop=plant.closed(system),
        kind=task.kind,
        norm=abscissa if task.kind == "abscissa" else found.objective,
        spectral_abscissa=abscissa,
        parameters=parameters,
        gain=K,
        eigenvalues=eigenvalues,
        stationarity=found.stationarity,
        radius=found.radius,
        status=found.status,
        evaluations=task.evaluations,
        starts=starts,
        history=tuple((one.evaluations, one.objective) for one in found.history),
    )
