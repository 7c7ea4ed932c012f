"""Controllers of a given structure with the smallest norm, or the farthest left spectrum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, get_args

import numpy as np

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import DesignError, InputError
from flexctl.parallel import on_one_thread
from flexctl.records import Summary
from flexctl.robustness import certify
from flexctl.search.nonsmooth import Minimum, Progress
from flexctl.search.synthesis.feedthrough import feedthrough, forbid_feedthrough
from flexctl.search.synthesis.fixed_modes import (
    balance_loop,
    require_decay,
    require_movable,
    require_no_fixed_mode,
)
from flexctl.search.synthesis.generalised_plant import (
    Channels,
    GeneralisedPlant,
    read_plant,
    state_space,
)
from flexctl.search.synthesis.interconnection import Interconnection
from flexctl.search.synthesis.norm_search import Norm, NormSearch
from flexctl.search.synthesis.stability_search import (
    clear_decay,
    require_single_gain,
    spectral_abscissa,
    variable_sizes,
)
from flexctl.search.synthesis.structure_input import are_rows
from flexctl.search.synthesis.structures import ControllerStructure

Structure = ControllerStructure | int | Sequence[Sequence[Any]] | Array

_DECAY = 1e-6  # of the typical rate
_ROUND_OFF = 1e-6  # of a norm, or a feedthrough: what the search has seen is not so any more


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
        How far the answer is from locally optimal: the length of the smallest combination of
        gradients gathered within a radius, in free numbers each divided by its own size (about
        that of the answer, or at which it moves eigenvalues by their own size). Relative to the
        norm; of a spectral abscissa to the typical rate, the geometric mean of the moduli of the
        plant's eigenvalues (1 of a sampled loop).
    status
        ``stationary``, or why the search ended before (`stalled`, `limit`, `stopped`); `unbounded`
        where a spectral abscissa falls as far as gains grow.
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


@on_one_thread
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
        The size of the structure unless they are given; those of which `ControllerStructure.pid`
        and `decentralised` name no channel are not used.
    start
        A controller from which to search, besides others: K, or a `control.StateSpace`.
    decay
        The spectral abscissa is kept below -`decay` [1/s]; default 1e-6 of the typical rate (of a
        sampled plant 1e-6 per sample), or half of the decay of a mode that no feedback moves, if
        that is less. Of ``abscissa`` the least that the answer has.
    starts
        Stable loops from which the norm is minimised.
    seed
        Of the random starts: the same seed gives the same controller.
    callback
        Told the best point after every evaluation of the norm, x in the structure's numbers; ends
        the search by returning True.

    Raises
    ------
    InputError
        Where plant, channels and structure do not fit.
    DesignError
        Where no stable loop, or none with the decay, was found, or the H2 norm is infinite for all
        controllers.

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
    if not isinstance(norm, str) or norm not in get_args(Norm):
        raise InputError(f"norm: expected {', '.join(get_args(Norm))}, got {norm!r:.60}")
    if callback is not None and not callable(callback):
        raise InputError(f"callback: expected a function, got {callback!r:.60}")
    starts, seed = checks.whole("starts", starts, least=1), checks.whole("seed", seed, least=0)
    wanted = None if decay is None else checks.not_negative("decay", decay)
    generalised, chosen = _read(plant, structure, nmeas, ncon)
    own = generalised.interconnection(chosen.order)
    own.require_shape(chosen.offset, "structure")
    require_decay(wanted, generalised.period)
    if norm != "abscissa" and not (own.B1.shape[1] and len(own.C1)):
        raise InputError(f"plant: expected inputs w and outputs z for norm={norm!r}, got none")
    _require_same_time(chosen, generalised)
    first = _start_of(start, own, generalised.dt)
    with np.errstate(all="ignore"):  # what overflows is no stable loop
        loop = balance_loop(own)
        require_no_fixed_mode(loop, "synthesise", (wanted or 0.0) * (generalised.period or 1.0))
        require_movable(loop, chosen, variable_sizes(loop, chosen), "synthesise")
        effective = chosen.free and loop.D.any()
        if effective:  # K (I - D K)^-1 is sought: any is possible, and the feedthrough is gone
            first, loop = None if first is None else own.effective(first), loop.without_through()
        if loop.shape == (1, 1) and not loop.D.any():
            require_single_gain(loop, "synthesise")
        free = forbid_feedthrough(loop, chosen) if norm == "h2" and not loop.sampled else chosen
        if wanted is None:
            slowest = clear_decay(loop, _DECAY)
        else:
            slowest = wanted * (generalised.period or 1.0)
        task = NormSearch(loop, free, norm, slowest)
        given = None if first is None else free.nearest(first)

        def gain(x: Array) -> Array:
            return own.behind(free.gain(x)) if effective else free.gain(x)

        def tell(progress: Progress) -> bool | None:
            value = _told(task, generalised.period, progress.objective)
            searched = effective or free is not chosen  # other numbers than those of the structure
            x = chosen.nearest(gain(progress.x)) if searched else progress.x
            return callback and callback(replace(progress, x=x, objective=value))

        found, tried = task.run(given, starts, seed, tell)
        K = gain(found.x)
    result = _record(generalised, task, K, chosen.named(chosen.nearest(K)), found, tried)
    slower = result.norm > -wanted if norm == "abscissa" and wanted else found.violation > 0
    if wanted and slower and found.status != "stopped":
        raise DesignError(
            f"synthesise: no loop with decay={wanted:g} found, the best has a spectral abscissa of "
            f"{result.spectral_abscissa:.3g} 1/s; ask for less, or for a larger structure"
        )
    return result


def _read(
    plant: Any, structure: Structure, nmeas: Channels | None, ncon: Channels | None
) -> tuple[GeneralisedPlant, ControllerStructure]:
    """Read plant and structure, each of which may tell the channels of the other."""
    if isinstance(structure, int | np.integer):
        order = checks.whole("structure", structure, least=0)
        generalised = read_plant(plant, nmeas, ncon)
        sizes = len(generalised.u), len(generalised.y)
        return generalised, ControllerStructure.full(*sizes, order)
    if not isinstance(structure, ControllerStructure):
        structure = _read_table(structure)
    m, p = (size - structure.order for size in structure.offset.shape)
    generalised = read_plant(plant, p if nmeas is None else nmeas, m if ncon is None else ncon)
    return generalised, structure.on(len(generalised.u), len(generalised.y))


def _read_table(structure: Any) -> ControllerStructure:
    """Read a matrix of True and False, or of numbers and names."""
    if not are_rows(structure):
        expected = "an order, a table or a ControllerStructure"
        raise InputError(f"structure: expected {expected}, got {structure!r:.60}")
    entries = [list(row) for row in structure]
    if all(isinstance(one, bool | np.bool_) for row in entries for one in row):
        return ControllerStructure.pattern(np.array(entries, dtype=bool))
    return ControllerStructure.table(entries)


def _told(task: NormSearch, period: float | None, value: float) -> float:
    """Return what is minimised as it is told: of a spectral radius the abscissa ln|z|/T [1/s]."""
    if task.kind != "abscissa" or period is None:
        return value
    return spectral_abscissa(np.array([complex(value)]), period)


def _require_same_time(structure: ControllerStructure, plant: GeneralisedPlant) -> None:
    """Refuse a structure whose numbers are for another sample time than the plant's."""
    dt = plant.dt or 0.0  # True: sampled, at a period that is not given
    if (
        structure.dt is None
        or (dt is True and structure.dt)
        or np.isclose(structure.dt, dt, atol=0)
    ):
        return
    expected = f"sample_time={plant.period:g}" if plant.sampled else "no sample_time"
    got = f"{structure.dt:g}" if structure.dt else "none"
    raise InputError(f"structure: expected {expected}, as the plant has, got {got}")


def _start_of(start: Any, loop: Interconnection, dt: Any) -> Array | None:
    """Return the gain [Dk Ck; Bk Ak] of a controller that the user has."""
    if start is None:
        return None
    if hasattr(start, "dt"):
        system = state_space("start", start)
        if system.dt not in (None, dt) and dt is not None:
            raise InputError(f"start: expected the sample time of the plant {dt}, got {system.dt}")
        parts = [checks.finite("start", getattr(system, name)) for name in "DCBA"]
        K = np.block([[parts[0], parts[1]], [parts[2], parts[3]]])
    else:
        K = np.atleast_2d(checks.finite("start", start))
    loop.require_shape(K, "start")
    return K


def _record(
    plant: GeneralisedPlant,
    task: NormSearch,
    K: Array,
    parameters: dict[str, float],
    found: Minimum,
    starts: int,
) -> Synthesis:
    """Gather what is known of the answer."""
    order = task.loop.order
    own = plant.interconnection(order)
    if not own.is_posed(K):
        raise DesignError(
            "synthesise: the controllers that were found make I - D22 K singular within round-off; "
            "set bounds, or count u among the outputs z"
        )
    system = own.closed(K)
    if task.kind == "h2" and not system.sampled:
        left, size = feedthrough(own, K)
        if np.abs(left).max(initial=0.0) > _ROUND_OFF * size:
            raise DesignError(
                "synthesise: the H2 norm is infinite: the loop that was found has a feedthrough "
                "from w to z; fix the controller's feedthrough at 0, or use norm='hinf'"
            )
        system = replace(system, D=np.zeros_like(system.D))
    eigenvalues = np.linalg.eigvals(system.A).astype(complex)
    abscissa = spectral_abscissa(eigenvalues, plant.period)
    if not abscissa < 0:
        raise DesignError(
            "synthesise: gains grow until round-off decides about stability "
            f"(up to {np.abs(K).max():.3g}); set bounds, or count u among the outputs z"
        )
    told = partial(_told, task, plant.period)
    norm, status = found.objective, found.status
    if task.kind != "abscissa":  # that of the loop as it is, not as it was scaled
        norm = task.norm_of(system).largest
        if norm > found.objective * (1 + _ROUND_OFF):
            status = "stalled"
    return Synthesis(
        controller=plant.controller(K, order),
        closed_loop=plant.closed(system),
        kind=task.kind,
        norm=abscissa if task.kind == "abscissa" else norm,
        spectral_abscissa=abscissa,
        parameters=parameters,
        gain=K,
        eigenvalues=eigenvalues,
        stationarity=found.stationarity,
        radius=found.radius,
        status="unbounded" if status == "target" else status,
        evaluations=task.evaluations,
        starts=starts,
        history=tuple((one.evaluations, told(one.objective)) for one in found.history),
    )
