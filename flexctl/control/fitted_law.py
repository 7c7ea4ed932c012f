"""The law of a method with what the design measures: the state, or instruments."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from flexctl.checks import Array
from flexctl.control.continuous_readings import direct_continuous_law
from flexctl.control.laws import COLLOCATED, LawParts, Recipe
from flexctl.control.observer import Observer, design_observer, observed_law
from flexctl.control.observer_based_law import (
    KnownTorques,
    ObservedStates,
    observed_sampled_law,
)
from flexctl.control.readings import (
    Instrumentation,
    Reading,
    fit_instruments,
    other_side,
    places_without_encoder,
    read_twice,
    readings_at,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.control.sampled_law import direct_law
from flexctl.control.sampled_observer import (
    LateReadings,
    SampledObserver,
    design_sampled_observer,
)
from flexctl.control.saturation import torque_limits
from flexctl.control.sensors import Instruments, assemble_instruments
from flexctl.errors import InputError
from flexctl.model import Design, ObserverChoice, Unquoted, refuse
from flexctl.plant import Plant, find_equilibrium


@dataclass(frozen=True, kw_only=True)
class FittedLaw:
    """A law with its instruments.

    Attributes
    ----------
    parts
        The law as it is run.
    unlimited
        The same without torque limits and rounding, if it has them; else None.
    expanded
        The latter of a sampled observer with its torques and rates as states, see
        `observed_sampled_law`; else None.
    observer
        The observer that gives it the state; None without one.
    fitted
        Instruments that it reads; None where it measures the state or its ideal instruments.
    """

    parts: LawParts
    unlimited: LawParts | None = None
    expanded: LawParts | None = None
    observer: Observer | SampledObserver | None = None
    fitted: Instrumentation | None = None


def fit_law(plant: Plant, design: Design, reference: ReferenceMotion, parts: LawParts) -> FittedLaw:
    """Give a law of measured q, v (n,) what the design measures.

    Raises
    ------
    InputError
        When an instrument is missing, or one is not needed.
    DesignError
        When there is no such observer.
    """
    if parts.external is not None and (design.instruments or design.ideal_instruments):
        key = "instruments" if design.instruments else "loop.measures"
        expected = f"none, as method {design.method} names the signals that it measures"
        got = Unquoted("some") if design.instruments else design.ideal_instruments
        raise refuse(design.label, key, expected=expected, got=got)
    if design.instruments:
        return _instrumented(plant, design, reference, parts)
    if not design.ideal_instruments:
        return FittedLaw(parts=parts)
    if design.loop.sample_time:
        observer = _sampled_observer(plant, design, reference, None)
        return _observed(plant, design, parts, observer, None)
    return _observed_continuously(plant, design, reference, parts, None)


def _instrumented(
    plant: Plant, design: Design, reference: ReferenceMotion, parts: LawParts
) -> FittedLaw:
    """Read instruments directly where they give all that the law uses, else by an observer."""
    if missing := places_without_encoder(plant, design):
        expected = f"an encoder of {_with_side(plant, missing[0])}, whose difference is asked for"
        raise refuse(design.label, "instruments", expected=expected, got=Unquoted("none"))
    fitted, needs = fit_instruments(plant, design), _needs(plant, parts)
    if name := read_twice(fitted):
        expected = f"the {name} once"
        raise refuse(design.label, "instruments", expected=expected, got=Unquoted("it twice"))
    drives = {plant.coordinates[row] for row in plant.drives}
    collocated = needs[0] | needs[1] <= drives
    if design.observer is None and collocated:
        fitted, needs = _with_links(plant, fitted, needs)
        if fitted.link_angles or fitted.link_rates:
            own = (one for one in parts.assumptions if not one.startswith(COLLOCATED))
            parts = replace(parts, assumptions=tuple(own))
    lacking = list(_lacking(fitted, needs))
    if design.observer is None and (collocated or not lacking):
        _require_fitting(plant, design, fitted, needs, lacking)
        if not design.loop.sample_time:
            return FittedLaw(parts=direct_continuous_law(plant, parts, fitted), fitted=fitted)
        unlimited = None
        if fitted.cycle > 1 or any(one.resolution for one in fitted.readings):
            unlimited = direct_law(plant, parts, fitted, rounded=False)
        read = direct_law(plant, parts, fitted, rounded=True)
        return FittedLaw(parts=read, unlimited=unlimited, fitted=fitted)
    _require_weighable(design, fitted)
    if not design.loop.sample_time:
        return _observed_continuously(plant, design, reference, parts, fitted)
    observer = _sampled_observer(plant, design, reference, fitted)
    return _observed(plant, design, parts, observer, fitted)


def closed_on_links(plant: Plant, design: Design, parts: LawParts) -> tuple[Sequence[str], ...]:
    """Joints whose position, and whose rate, a law without an observer takes behind the spring."""
    if not design.instruments or design.observer is not None:
        return (), ()
    fitted, needs = fit_instruments(plant, design), _needs(plant, parts)
    if not needs[0] | needs[1] <= {plant.coordinates[row] for row in plant.drives}:
        return (), ()
    fitted, _ = _with_links(plant, fitted, needs)
    return fitted.link_angles, fitted.link_rates


def _observed_continuously(
    plant: Plant,
    design: Design,
    reference: ReferenceMotion,
    parts: LawParts,
    fitted: Instrumentation | None,
) -> FittedLaw:
    observer = _continuous_observer(plant, design, reference, fitted)
    limits, winding = torque_limits(plant.arm), design.loop.tracking_time
    unlimited = None
    if np.isfinite(limits).any():
        none = np.full(plant.m, np.inf)
        unlimited = observed_law(plant, parts, observer, none, fitted=fitted)
    observed = observed_law(plant, parts, observer, limits, winding, fitted)
    return FittedLaw(parts=observed, unlimited=unlimited, observer=observer, fitted=fitted)


_T = TypeVar("_T")
_known: deque[tuple[Plant, str, Any]] = deque(maxlen=16)


def _once(plant: Plant, facts: object, make: Callable[[], _T]) -> _T:
    """Return `make()`, made once for this plant and these facts, equal if their `repr` is."""
    name = repr(facts)
    for its_plant, its_name, made in _known:
        if its_plant is plant and its_name == name:
            return made
    made = make()
    _known.appendleft((plant, name, made))
    return made


def _facts_of_observer(design: Design, reference: ReferenceMotion) -> tuple[object, ...]:
    """Return everything in a design that its observer depends on, whatever law uses it."""
    ends = reference.start.tolist(), reference.final.tolist()
    return "observer", design.observer, design.instruments, design.loop, ends, design.label


def _continuous_observer(
    plant: Plant, design: Design, reference: ReferenceMotion, fitted: Instrumentation | None
) -> Observer:
    nominal, kinds = plant.nominal, design.ideal_instruments
    if fitted:
        kinds = tuple(dict.fromkeys(one.kind for one in fitted.readings))

    def make() -> Observer:
        if fitted:
            read = _continuous_readings(nominal, reference, fitted)
        else:
            read = _ideal_instruments(nominal, design, reference)
        return design_observer(nominal, design, reference, read, kinds)

    return _once(plant, _facts_of_observer(design, reference), make)


def _sampled_observer(
    plant: Plant, design: Design, reference: ReferenceMotion, fitted: Instrumentation | None
) -> SampledObserver:
    def make() -> SampledObserver:
        if fitted:
            readings = _late_readings(plant, reference, fitted)
        else:
            readings = _ideal_readings(plant, design, reference)
        return design_sampled_observer(plant.nominal, design, reference, readings)

    return _once(plant, _facts_of_observer(design, reference), make)


def _observed(
    plant: Plant,
    design: Design,
    parts: LawParts,
    observer: SampledObserver,
    fitted: Instrumentation | None,
) -> FittedLaw:
    limits, resolution = torque_limits(plant.arm), design.loop.torque_resolution
    states = ObservedStates(observer=observer, fitted=fitted, delay=design.loop.delay, m=plant.m)
    acting = KnownTorques(
        limit=limits, resolution=resolution, tracking_time=design.loop.tracking_time
    )
    law = observed_sampled_law(plant, parts, states, acting, rounded=True)
    free, steps = KnownTorques(limit=np.full(plant.m, np.inf)), bool(resolution)
    steps |= observer.readings.cycle > 1
    steps |= any(one.resolution for one in (fitted.readings if fitted else ()))
    plain = partial(observed_sampled_law, plant, parts, states, free, rounded=False)
    return FittedLaw(
        parts=law,
        unlimited=plain() if steps or np.isfinite(limits).any() else None,
        expanded=plain(expanded=True),
        observer=observer,
        fitted=fitted,
    )


_POSITION, _RATE = "an encoder", "a tachometer or a difference"  # what reads them
_Needs = tuple[set[str], set[str]]  # coordinates whose position, and whose rate, a law reads


def _needs(plant: Plant, parts: LawParts) -> _Needs:
    law = parts.law.function(plant) if isinstance(parts.law, Recipe) else parts.law
    read = []
    for column in (5, 6):
        entries = [law.jac_sparsity(row, column).get_triplet()[1] for row in (0, 1)]
        read.append({plant.coordinates[k] for own in entries for k in own})
    return read[0], read[1]


def _lacking(fitted: Instrumentation, needs: _Needs) -> Iterator[tuple[str, str]]:
    """Yield what a law reads and no instrument gives: the instrument, and its coordinate."""
    for place in sorted(needs[0] - set(fitted.at("encoder"))):
        yield _POSITION, place
    for place in sorted(needs[1] - _rates(fitted)):
        yield _RATE, place


def _rates(fitted: Instrumentation) -> set[str]:
    """Coordinates whose rates are read."""
    return set(fitted.at("tachometer")) | {one.place for one in fitted.differences}


def _with_links(
    plant: Plant, fitted: Instrumentation, needs: _Needs
) -> tuple[Instrumentation, _Needs]:
    """Let readings behind the springs of joints stand for those of rotors, in a law of motors.

    A position that an encoder of the link reads is the link's, whatever the motor has, so that
    position loops close at the link and rate loops at the motor, as dual encoders do.
    """

    def links(places: set[str], read: set[str], own: set[str]) -> dict[str, str]:
        others = {place: other_side(plant, place) for place in sorted(places - own)}
        return {place: other for place, other in others.items() if other in read}

    rates = _rates(fitted)
    angles = links(needs[0], set(fitted.at("encoder")), set())
    slow = links(needs[1], rates, rates)
    behind = (
        {angles.get(place, place) for place in needs[0]},
        {slow.get(place, place) for place in needs[1]},
    )
    own = {"link_angles": tuple(angles.values()), "link_rates": tuple(slow.values())}
    return replace(fitted, **own), behind


def _with_side(plant: Plant, place: str) -> str:
    """Name a coordinate, of a flexible joint with the key of its side."""
    if other_side(plant, place) is None:
        return place
    return f'{place} (side = "{"motor" if place.startswith("rotor") else "link"}")'


def _require_fitting(
    plant: Plant,
    design: Design,
    fitted: Instrumentation,
    needs: _Needs,
    lacking: list[tuple[str, str]],
) -> None:
    """Refuse instruments that are missing, read by nothing, or give the same rate twice."""
    for what, place in lacking:
        expected = f"{what} of {_with_side(plant, place)}, which method {design.method} reads"
        raise refuse(design.label, "instruments", expected=expected, got=Unquoted("none"))
    twice = {one.place for one in fitted.differences} & set(fitted.at("tachometer"))
    for place in sorted(twice):
        expected = f"one rate of {place}"
        got = Unquoted("a tachometer and a difference")
        raise refuse(design.label, "instruments", expected=expected, got=got)
    differenced = {one.of for one in fitted.differences}
    for k, one in enumerate(fitted.readings):
        if k not in differenced and not _reads(one, needs):
            raise _not_needed(design, one.name)
    for one in fitted.differences:
        if one.place not in needs[1]:
            raise _not_needed(design, f"difference of {one.place}")


def _reads(one: Reading, needs: _Needs) -> bool:
    known = {"encoder": needs[0], "tachometer": needs[1]}
    return one.place in known.get(one.kind, set())


def _not_needed(design: Design, name: str) -> InputError:
    expected = (
        f"no {name}, as method {design.method} does not read it (with a table [observer] it would "
        "be read by an observer)"
    )
    return refuse(design.label, "instruments", expected=expected, got=Unquoted("one"))


_ANY = 1.0  # intensity of ideal readings, which a given gain makes no use of


def _require_weighable(design: Design, fitted: Instrumentation) -> None:
    """Refuse instruments that an observer cannot weigh, or does not need."""
    if fitted.differences:
        expected = "no difference, as there is an observer, which estimates rates"
        raise refuse(design.label, "instruments", expected=expected, got=Unquoted("one"))
    if design.observer and design.observer.gain is not None:
        return  # a given gain weighs them
    sampled = bool(design.loop.sample_time)
    what, none = ("noise or a resolution", "neither") if sampled else ("noise", "none")
    for one in fitted.readings:
        if not (one.variance or one.density):
            expected = f"{what} above 0 of the {one.name}, by which an observer weighs readings"
            raise refuse(design.label, "instruments", expected=expected, got=Unquoted(none))


def _continuous_readings(
    plant: Plant, reference: ReferenceMotion, fitted: Instrumentation
) -> Instruments:
    """Linear readings at the final pose, for a continuous observer."""
    return Instruments(
        names=fitted.names,
        C=_slopes(plant, fitted, reference.final),
        V=np.diag([one.density**2 or _ANY for one in fitted.readings]),
    )


def _late_readings(
    plant: Plant, reference: ReferenceMotion, fitted: Instrumentation
) -> LateReadings:
    """Linear readings at the final pose, for a sampled observer."""
    return LateReadings(
        names=fitted.names,
        kinds=tuple(dict.fromkeys(one.kind for one in fitted.readings)),
        C=_slopes(plant.nominal, fitted, reference.final),
        variance=np.diag([one.variance or _ANY for one in fitted.readings]),
        late=tuple(one.late for one in fitted.readings),
        every=tuple(one.every for one in fitted.readings),
    )


def _slopes(plant: Plant, fitted: Instrumentation, joints: Array) -> Array:
    """Return dy/d[q; v] (p, 2n) of the readings where the arm rests, sagging under gravity.

    The observer's gain is designed at that equilibrium, too. The reading of a gauge on a bent
    sliding link depends on the position of the link.
    """

    def make() -> Array:
        q, v = ca.SX.sym("q", plant.n), ca.SX.sym("v", plant.n)
        free = plant.free_input
        slopes = ca.jacobian(readings_at(plant, fitted.readings, q, v), ca.vertcat(q, v))
        values = ca.Function("slopes", [q, v, *free], [ca.densify(slopes)])
        known = [plant.numbers] if free else []
        rest, _ = find_equilibrium(plant.nominal, plant.straight(joints))
        return np.array(values(rest, np.zeros(plant.n), *known))

    read = [(one.kind, one.place, one.xi) for one in fitted.readings]
    return _once(plant, ("slopes", read, joints.tolist()), make)


def _ideal_readings(plant: Plant, design: Design, reference: ReferenceMotion) -> LateReadings:
    """Ideal instruments, read at the samples: white noise of intensity V has the variance V/T."""
    read = _ideal_instruments(plant.nominal, design, reference)
    return LateReadings(
        names=read.names,
        kinds=design.ideal_instruments,
        C=read.C,
        variance=read.V / design.loop.sample_time,
        late=(0,) * len(read.names),
        every=(1,) * len(read.names),
    )


def _ideal_instruments(plant: Plant, design: Design, reference: ReferenceMotion) -> Instruments:
    """Ideal instruments of a design plant, with the noise that the observer's table states."""
    noise, gauges = (design.observer or ObserverChoice()).noise, design.loop.strain_gauges
    kinds, joints = design.ideal_instruments, reference.final
    make = partial(assemble_instruments, plant, kinds, noise, joints, gauges)
    return _once(plant, ("instruments", kinds, noise, joints.tolist(), gauges), make)
