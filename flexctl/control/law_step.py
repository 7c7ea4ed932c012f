"""What a computer evaluates of a law: once, or of a sampled law at every sample."""

from __future__ import annotations

import casadi as ca

from flexctl.control.controller import Controller
from flexctl.control.laws import input_symbols, law_function


def step_of_law(controller: Controller) -> ca.Function:
    """Return the law with all numbers folded in, as it is evaluated: see `Controller.law`.

    A sampled law gives its states at the next sample, z+ = z + T z', in place of z'. States that it
    has as z' = (z+ - z)/T, of an observer and of readings that wait, then cost what z+ costs. The
    noise of instruments, which a run puts into its states, is zero.
    """
    T, law = controller.sample_time, controller.law
    if T is None:
        return law
    weight, z, *others = inputs = input_symbols(law)
    silent = ca.SX(z)
    silent[controller.noise_rows, 0] = 0
    tau, rate = law(weight, silent, *others)
    return law_function(inputs, tau, z + T * rate)
