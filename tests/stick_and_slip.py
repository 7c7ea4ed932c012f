"""A mass under PID control with friction, from event to event, without this package."""

import numpy as np
import scipy.integrate


def stick_and_slip(F_s, F_c, until):
    """Errors of a PID loop of a mass over time, event by event: sticks in closed form, slips by
    SciPy. The friction drops at once from F_s to F_c."""
    k, c, k_i, m = 50.0, 10.0, 40.0, 2.0
    t, x, z, trace = 0.0, -5e-3, 0.0, []
    while t < until:
        load = -k * x - k_i * z  # x stands still: the load changes at -k_i x
        target = F_s * np.sign(-x)
        wait = max((target - load) / (-k_i * x), 0.0)
        trace.append((t, x))
        t, z = t + wait, z + wait * x
        trace.append((t, x))
        way = np.sign(-x)

        def slip(_s, y, way=way):
            return [y[1], (-k * y[0] - c * y[1] - k_i * y[2] - way * F_c) / m, y[0]]

        def stops(s, y, way=way):
            return way * y[1] + (1e-9 if s < 1e-3 else 0.0)

        stops.terminal, stops.direction = True, -1
        y0 = [x, way * 1e-12, z]
        done = scipy.integrate.solve_ivp(slip, (0, 50), y0, events=stops, rtol=1e-10, atol=1e-13)
        t, (x, _, z) = t + done.t[-1], done.y[:, -1]
        if abs(x) < 1e-7:
            break
    return np.array(trace).T
