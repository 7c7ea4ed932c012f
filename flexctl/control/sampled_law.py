"""Laws that are sampled and read instruments directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import casadi as ca

from flexctl.checks import Array
from flexctl.control.laws import LawParts, Recipe, Signals, law_function, law_key
from flexctl.control.readings import Instrumentation, at_rotors
from flexctl.control.sampled_readings import ReadingStates, ReadNow
from flexctl.control.tustin_integrals import INTEGRAL_STEPS
from flexctl.plant import Plant


@dataclass(frozen=True, kw_only=True)
class Inner:
    """A law of measured q, v (n, 1) inside one that gets them in another way."""

    parts: LawParts

    @property
    def numbers(self) -> Mapping[str, Array]:
        """Its own numbers by name."""
        own = self.parts.law
        return own.numbers if isinstance(own, Recipe) else {}

    @property
    def n_state(self) -> int:
        """Number of its states: integrals, then its own."""
        return self.parts.n_state

    @property
    def n_integral(self) -> int:
        """Number of its integrals."""
        return self.parts.n_state - len(self.parts.own_states)

    @property
    def sums_by_tustin(self) -> bool:
        """Whether its integrals are by Tustin's rule: T/2 of their rates acts at once."""
        return INTEGRAL_STEPS in self.numbers

    def written(self, plant: Plant, signals: Signals) -> tuple[ca.Function, list[ca.SX]]:
        """Write the law with the signals of the outer one; and its inputs beyond q, v."""
        own = self.parts.law
        if isinstance(own, Recipe):
            return own.write(plant, signals), signals.inputs[7:]
        return own, plant.free_input

    def call(
        self, plant: Plant, signals: Signals, z: ca.SX, q: ca.SX, v: ca.SX
    ) -> tuple[ca.SX, ca.SX]:
        """Torques (m, 1) and z' of the law at measured q, v (n, 1)."""
        own = len(self.parts.own_states)
        z_own, n = ca.SX.sym("z", z.numel()), plant.n
        q_own, v_own = ca.SX.sym("q", n), ca.SX.sym("v", n)
        inside = replace(signals, z=z_own, q=q_own, v=v_own, n_own=own)
        law, last = self.written(plant, inside)
        known = [signals.s, z, signals.q_d, signals.v_d, signals.a_d, q, v]
        tau, z_rate = law.call([*known, *last][: law.n_in()])
        return tau, z_rate


def direct_law(
    plant: Plant, parts: LawParts, fitted: Instrumentation, *, rounded: bool
) -> LawParts:
    """Make the law that takes positions and rates from instruments as they are.

    Its measured signals are the readings (p,); its state is [states of the law; `ReadingStates`].
    """
    inner, reads, p = Inner(parts=parts), ReadingStates(of=fitted), len(fitted.readings)
    n_z = inner.n_state

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, z, y = signals.numbers, signals.z, ca.SX.sym("y", p)
        now = reads.read(y, z[n_z:, 0], x, rounded=rounded)
        tau, rate = inner.call(plant, signals, z[:n_z, 0], *placed(plant, fitted, now, signals))
        own = (now.after - z[n_z:, 0]) / x["period"]
        outer = replace(signals, q=y, v=ca.SX.sym("unused", p))
        return law_function(outer.inputs, tau, ca.vertcat(rate, own))

    recipe = Recipe(
        write=write,
        numbers={**inner.numbers, **reads.numbers},
        integral=bool(inner.n_integral),
        n_own=len(parts.own_states) + reads.size,
        structure=("direct", law_key(parts.law, plant), reads.structure, rounded),
    )
    return replace(
        parts,
        law=recipe,
        n_state=n_z + reads.size,
        own_states=(*parts.own_states, *reads.names),
    )


def placed(
    plant: Plant, fitted: Instrumentation, now: ReadNow, signals: Signals
) -> tuple[ca.SX, ca.SX]:
    """Coordinates and rates (n, 1) as far as instruments give them; zero elsewhere.

    Where the link is read instead of the rotor, the rotor's angle is taken as that of the link plus
    the deflection of the spring under the weight at the reference: the law's error is the link's.
    """
    q, v = ca.SX.zeros(plant.n), ca.SX.zeros(plant.n)
    for place, k in fitted.at("encoder").items():
        q[plant.coordinates.index(place)] = now.readings[k]
    for place, k in fitted.at("tachometer").items():
        v[plant.coordinates.index(place)] = now.readings[k]
    for k, one in enumerate(fitted.differences):
        v[plant.coordinates.index(one.place)] = now.rates[k]
    position, rate, _ = signals.driven
    for rotor, joint in at_rotors(plant, fitted.link_angles):
        q[rotor] = q[joint] + position[joint] - signals.q_d[joint]
    for rotor, joint in at_rotors(plant, fitted.link_rates):
        v[rotor] = v[joint]
        if fitted.fed_rate:  # else the law's error is the rate itself
            v[rotor] += fitted.fed_rate * (rate[joint] - signals.v_d[joint])
    return q, v
