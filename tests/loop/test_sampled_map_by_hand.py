"""The map of a loop with a sampled observer, built again from its parts by NumPy alone.

The arm is not the one that the observer knows: it has more modes and another payload.
"""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.linear import linearise
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise as linearise_plant
from flexctl.verdict.broken_loop import break_at_sensors
from flexctl.verdict.margins import stability_margins
from flexctl.verdict.margins_at_sensors import sensor_margins

T = 2e-3
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.01}
MODES = BasisChoice(kind="modes", order=2)
ENCODER = {"kind": "encoder", "noise": 1e-5}
GAUGE = {"kind": "gauge", "xi": 0.1, "noise": 1e-3}
CAMERA = {"kind": "deflection", "xi": 1.0, "noise": 1e-4, "sample_time": 3 * T, "delay": 3.5 * T}
LINK = {"kind": "encoder", "side": "link", "noise": 2e-5}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def held(A, B, time):
    """e^{At} and int e^{As} ds B."""
    n, m = B.shape
    whole = scipy.linalg.expm(np.block([[A, B], [np.zeros((m, n + m))]]) * time)
    return whole[:n, :n], whole[:n, n:]


def slopes(loop, plant):
    """dy/d[q; v] of the readings, by differences."""
    h, x0 = (
        1e-6,
        np.concatenate([plant.straight(loop.controller.reference.final), np.zeros(plant.n)]),
    )

    def read(x):
        return loop.measurement.read(x[: plant.n], x[plant.n :])[0]

    return np.array([(read(x0 + h * e) - read(x0 - h * e)) / (2 * h) for e in np.eye(len(x0))]).T


class ByHand:
    """A sample of the loop, for one joint: deviations of all states in, those after it out."""

    def __init__(self, loop, own, K, Ki, truth, factor=1.0, read=1.0):
        """`own`: the loop around the design plant; `K`, `Ki`: feedback of state and integral.

        `factor` is one of the torque, `read` those of the readings (p,).
        """
        self.observer, self.delay = loop.controller.observer, loop.controller.delay
        self.K, self.Ki, self.factor, self.read = K, Ki, factor, read
        seen = own.controller.plant
        design = linearise_plant(seen, seen.straight(loop.controller.reference.final))
        self.arms = {"truth": truth, "design": design}
        self.C = {"truth": slopes(loop, loop.truth), "design": slopes(own, seen)}
        self.late = self.observer.readings.late
        whole, part = divmod(self.delay, T)
        self.spans = [(part, int(whole) + 1), (T - part, int(whole))] if part > 1e-12 else []
        self.spans = self.spans or [(T, int(whole))]
        self.waits = max(ago for _, ago in self.spans)
        rows = [one.kind == "encoder" for one in loop.controller.fitted.readings]
        self.summed = rows.index(True)  # the reading that the integral sums
        sizes = len(truth.A_state), len(design.A_state), int(Ki is not None)
        self.kept = self.observer.readings.kept  # of outputs when readings were taken
        self.parts = np.cumsum([*sizes, self.waits, sum(self.late), sum(self.kept)])

    def moved(self, name, x, torques):
        for time, ago in self.spans:
            Phi, Gamma = held(self.arms[name].A_state, self.arms[name].B_state, time)
            x = Phi @ x + Gamma[:, 0] * torques[ago]
        return x

    def step(self, state, sample):
        x, estimate, z, past, readings, known, _ = np.split(state, self.parts)
        y, expected = self.read * (self.C["truth"] @ x), self.C["design"] @ estimate
        own = list(np.split(readings, np.cumsum(self.late)[:-1]))
        guessed = list(np.split(known, np.cumsum(self.kept)[:-1]))
        got = [old[-1] if d else now for d, old, now in zip(self.late, own, y, strict=True)]
        due = [
            old[-1] if d else now for d, old, now in zip(self.late, guessed, expected, strict=True)
        ]
        change = self.observer.gains[sample] @ (np.array(got) - np.array(due))
        estimate = estimate + change[: len(estimate)]
        known = known + change[len(estimate) :]
        guessed = list(np.split(known, np.cumsum(self.kept)[:-1]))
        u = self.K @ estimate
        if self.Ki is not None:
            u += self.Ki * z[0]
            rare = self.observer.readings.every[self.summed] > 1
            z = z + T * (estimate[0] if rare else got[self.summed])
        torques = [u, *past]
        now = self.C["design"] @ estimate
        shifted = [[y[i], *own[i][:-1]] if d else [] for i, d in enumerate(self.late)]
        ahead = [
            guess if sample % every else [now[i], *guess][: len(guess)]
            for i, (guess, every) in enumerate(
                zip(guessed, self.observer.readings.every, strict=True)
            )
        ]
        acts = [self.factor * tau for tau in torques]  # the observer does not know the factor
        after = [self.moved("truth", x, acts), self.moved("design", estimate, torques), z]
        after += [np.array(torques[: self.waits]), np.concatenate(shifted), np.concatenate(ahead)]
        return np.concatenate([np.atleast_1d(part) for part in after])

    @property
    def multipliers(self):
        """Eigenvalues of the map over all samples after which the readings come together again."""
        whole = np.eye(self.parts[-1])
        for k in range(self.observer.readings.cycle):
            whole = np.array([self.step(x, k) for x in whole.T]).T
        return np.linalg.eigvals(whole)


CASES = {
    "prompt": ({}, [ENCODER, GAUGE], 0.0, None),
    "late": ({}, [ENCODER | {"delay": T}, GAUGE | {"delay": 2 * T}], 0.6 * T, None),
    "integral": ({}, [ENCODER, GAUGE | {"delay": T}], 1.4 * T, 40.0),
    "two encoders": ({"flexible_joint": ROTOR}, [ENCODER, LINK | {"delay": T}], T, None),
    "camera": ({}, [ENCODER, CAMERA], 0.6 * T, None),
    "rare encoder": ({}, [ENCODER | {"sample_time": 2 * T}, GAUGE], T, 40.0),
    "two rates": ({}, [ENCODER | {"sample_time": 2 * T, "delay": T}, CAMERA, GAUGE], 0.0, None),
    "torque": ({"flexible_joint": ROTOR}, [ENCODER, {"kind": "torque", "noise": 1e-2}], 0.0, 30.0),
}


def loops(make, case, payload=1.5):
    """The loop on a finer arm with another payload, that on its design plant, and its feedback."""
    more, instruments, delay, Gi = CASES[case]
    arm = make["single"](**more)
    gains = {"Gp": [60.0], "Gv": [12.0]} | ({"Gi": [Gi]} if Gi else {})
    loop = {"sample_time": T, "delay": delay}
    tables = {"gains": gains, "loop": loop}
    design = make["design"](
        [0.0], [0.5], "joint-pd", instruments=instruments, observer={}, **tables
    )
    controller = design_controller(arm, design, MODES)
    own = close_around(controller, controller.plant)
    truth = close_loop(controller, arm, modes=4).truth.loaded(payload)
    state = make["design"]([0.0], [0.5], "joint-pd", **tables)
    measured = linearise(close_around(design_controller(arm, state, MODES), controller.plant))
    Ki = measured.integral_gain[0, 0] if Gi else None
    return close_around(controller, truth), own, measured.feedback[0], Ki


@pytest.mark.slow_but("integral", "rare encoder")
@pytest.mark.parametrize("case", CASES)
def test_multipliers_on_another_arm(make, case):
    loop, own, K, Ki = loops(make, case)
    linear = linearise(loop)
    z = np.linalg.eigvals(sampled_loop(linear, T, linear.delay))
    expected = ByHand(loop, own, K, Ki, linear.plant).multipliers
    # waiting samples form Jordan blocks at zero
    gone = 0.02**loop.controller.cycle
    z, expected = z[np.abs(z) > gone], expected[np.abs(expected) > gone]
    assert len(z) == len(expected)
    assert np.abs(z[:, None] - expected).min(axis=1).max() < 1e-6  # slopes by differences
    assert np.abs(z[:, None] - expected).min(axis=0).max() < 1e-6


RARE = ["camera", "rare encoder", "two rates"]


@pytest.mark.slow_but("integral", "late")
@pytest.mark.parametrize("case", ["late", "integral", "two encoders", *RARE])
def test_gain_margins_are_where_its_multipliers_leave_the_circle(make, case):
    loop, own, K, Ki = loops(make, case, payload=1.2)
    linear = linearise(loop)
    margins = stability_margins(linear)
    limit = 10 ** (margins.gain_up_db[0] / 20)
    assert np.isfinite(limit)
    sizes = [
        np.abs(ByHand(loop, own, K, Ki, linear.plant, factor).multipliers).max()
        for factor in (1.0, 0.999 * limit, 1.001 * limit)
    ]
    assert sizes[0] < 1
    assert sizes[1] < 1 < sizes[2]


@pytest.mark.parametrize("case", RARE)
def test_phase_margins_of_rare_readings_are_where_its_multipliers_leave_the_circle(make, case):
    loop, own, K, Ki = loops(make, case, payload=1.2)
    linear = linearise(loop)
    margin = np.radians(stability_margins(linear).phase_deg[0])
    sizes = [
        np.abs(ByHand(loop, own, K, Ki, linear.plant, np.exp(1j * phase)).multipliers).max()
        for phase in (0.999 * margin, 1.001 * margin, -1.001 * margin)
    ]
    assert sizes[0] < 1 < min(sizes[1:])


@pytest.mark.slow_but("camera")
@pytest.mark.parametrize("case", RARE)
def test_margins_of_rare_readings_at_the_sensors(make, case):
    loop, own, K, Ki = loops(make, case, payload=1.2)
    linear = linearise(loop)
    margins = sensor_margins(linear)
    assert margins.readings == loop.controller.fitted.names
    limited = 0
    for j, up in enumerate(margins.gain_up_db):
        for far in (up, -margins.gain_down_db[j], 1j * np.radians(margins.phase_deg[j])):
            if not np.isfinite(far):
                continue
            limited += 1
            for share in (0.999, 1.001):
                read = np.ones(len(margins.readings), dtype=complex)
                read[j] = np.exp(
                    share * (far if isinstance(far, complex) else far / 20 * np.log(10))
                )
                size = np.abs(ByHand(loop, own, K, Ki, linear.plant, read=read).multipliers).max()
                assert (size > 1) == (share > 1)
    assert limited >= 3


def test_the_loop_is_broken_at_every_reading(make):
    loop, *_ = loops(make, "two encoders")
    assert break_at_sensors(linearise(loop)).m == 2
