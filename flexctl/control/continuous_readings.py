"""A continuous law that reads instruments directly: their differences are filtered derivatives."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from flexctl.control.laws import LawParts, Recipe, Signals, law_function, law_key
from flexctl.control.readings import Instrumentation
from flexctl.control.sampled_law import Inner, placed
from flexctl.control.sampled_readings import ReadNow
from flexctl.plant import Plant


def direct_continuous_law(plant: Plant, parts: LawParts, fitted: Instrumentation) -> LawParts:
    """Make the law that takes positions and rates from instruments as they are.

    Its measured signals are the readings y (p,); its state is [states of the law; w] with
    w' = (y - w)/T_f of every difference, whose rate is w', that is s/(T_f s + 1) y.
    """
    inner, p = Inner(parts=parts), len(fitted.readings)
    n_z, of = inner.n_state, [one.of for one in fitted.differences]
    times = {"times": np.array([one.time_constant for one in fitted.differences])} if of else {}

    def write(plant: Plant, signals: Signals) -> ca.Function:
        x, z, y = signals.numbers, signals.z, ca.SX.sym("y", p)
        rates = (y[of] - z[n_z:, 0]) / x["times"] if of else ca.SX(0, 1)
        now = ReadNow(readings=y, rates=rates, after=rates)
        tau, rate = inner.call(plant, signals, z[:n_z, 0], *placed(plant, fitted, now, signals))
        outer = replace(signals, q=y, v=ca.SX.sym("unused", p))
        return law_function(outer.inputs, tau, ca.vertcat(rate, rates))

    read = [(one.kind, one.place) for one in fitted.readings]
    differences = [(one.place, one.of) for one in fitted.differences]
    recipe = Recipe(
        write=write,
        numbers={**inner.numbers, **times},
        integral=bool(inner.n_integral),
        n_own=len(parts.own_states) + len(of),
        structure=("direct", law_key(parts.law, plant), read, differences, fitted.links),
    )
    names = tuple(f"filtered encoder of {one.place}" for one in fitted.differences)
    return replace(
        parts,
        law=recipe,
        n_state=n_z + len(of),
        own_states=(*parts.own_states, *names),
    )
