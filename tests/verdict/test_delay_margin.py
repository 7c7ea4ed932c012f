"""Delay margins of sampled loops against the multipliers at one delay after the other."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.loop.linear_loop import sampled_loop
from flexctl.verdict import delay_margin as module
from flexctl.verdict.broken_loop import GainCrossovers
from flexctl.verdict.delay_margin import (
    continuous_delay,
    may_miss_bands,
    reading_delay,
    sampled_delay,
)

T = 0.1


def excess(loop, channels, further):
    """Largest multiplier minus 1 when these channels are later by `further` [s]."""
    delays = np.full(loop.B.shape[1], loop.delay)
    delays[list(channels)] += further
    return np.abs(np.linalg.eigvals(sampled_loop(loop, loop.sample_time, delays))).max() - 1


def is_the_first(loop, channels, found, count=60):
    """Whether a loop is stable up to this further delay [s], and no longer right after it."""
    on_the_way = np.linspace(0, found * (1 - 1e-6), count)
    stable = all(excess(loop, channels, d) < 0 for d in on_the_way)
    return stable and excess(loop, channels, found * (1 + 1e-6)) > 0


def rigid(make, period=T, delay=0.0):
    """A double integrator under PD."""
    return make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]], None, period, delay)


def coupled(make, integral=True, delay=0.03):
    """Two joints of unlike gains that move each other, the second on a spring."""
    by_q, by_v = -np.array([[6.0, 1.0], [0.5, 9.0]]), -np.diag([4.0, 2.5])
    by_z = -np.diag([1.5, 2.0]) if integral else None
    M, K = [[2.0, 0.3], [0.3, 1.0]], [[0.0, 0.0], [0.0, 5.0]]
    return make["linear"](M, np.diag([0.1, 0.2]), K, by_q, by_v, by_z, T, delay)


def ringing(make, frequency, damping=0.01, moved=0.3):
    """A joint and a mode that it moves, of this frequency [rad/s] with the joint free."""
    stiff, late = frequency**2 * (1 - moved**2), 2 * damping * frequency * (1 - moved**2)
    M, D, K = [[1.0, moved], [moved, 1.0]], np.diag([0.0, late]), np.diag([0.0, stiff])
    return make["linear"](M, D, K, [[-4.0, 0.0]], [[-3.0, 0.0]], None, T, 0.0)


def swinging(make, delay):
    """A mode of 2.5 rad per sample, which late feedback drives and damps by turns."""
    return make["linear"]([[1]], [[0.24]], [[625.0]], [[-20.0]], [[0.0]], None, T, delay)


@pytest.mark.parametrize("delay", [0.0, 0.25, 1.0])
def test_of_a_rigid_joint(make, delay):
    loop = rigid(make, delay=delay * T)
    assert is_the_first(loop, [0], sampled_delay(loop, [0]))


@pytest.mark.parametrize("channels", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("integral", [False, True])
def test_of_one_of_two_joints_and_of_both(make, channels, integral):
    loop = coupled(make, integral)
    assert is_the_first(loop, channels, sampled_delay(loop, channels))


def test_of_a_mode_that_turns_within_a_sample(make):
    loop = ringing(make, 41.0)
    assert is_the_first(loop, [0], sampled_delay(loop, [0]), 120)


def test_what_no_delay_can_lose_has_no_limit(make):
    weak = make["linear"]([[1]], [[1]], [[1]], [[-0.05]], [[-0.02]], None, T, 0.0)
    assert all(excess(weak, [0], d) < 0 for d in np.linspace(0, 3, 20))
    assert sampled_delay(weak, [0]) == np.inf


def test_a_torque_that_nothing_is_fed_back_to_may_be_late(make):
    gains = np.diag([-4.0, 0.0]), np.diag([-9.0, 0.0])
    idle = make["linear"](np.eye(2), np.eye(2), np.eye(2), *gains, None, T)
    assert sampled_delay(idle, [1]) == np.inf
    assert is_the_first(idle, [0], sampled_delay(idle, [0]))


LOOPS = {
    "rigid": (rigid, (0,)),
    "late": (lambda make: rigid(make, delay=1.4 * T), (0,)),
    "one": (coupled, (1,)),
    "both": (coupled, (0, 1)),
    "later": (lambda make: coupled(make, delay=1.2 * T), (0,)),
    "slow mode": (lambda make: ringing(make, 12.0), (0,)),
    "fast mode": (lambda make: ringing(make, 97.3), (0,)),
    "by turns": (lambda make: swinging(make, 1.0 * T), (0,)),
    "one turn later": (lambda make: swinging(make, 4.0 * T), (0,)),
    "two turns later": (lambda make: swinging(make, 6.3 * T), (0,)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_places_of_size_one_tell_the_same_as_multipliers_on_the_way(make, monkeypatch, name):
    build, channels = LOOPS[name]
    loop = build(make)
    found = sampled_delay(loop, channels)
    assert is_the_first(loop, channels, found)
    monkeypatch.setattr(module, "_earlier", lambda _family, first, _points: first)
    assert sampled_delay(loop, channels) == pytest.approx(found, rel=1e-8)


@pytest.mark.parametrize("missed", [[], [19.7]])
@pytest.mark.parametrize("name", LOOPS)
def test_what_the_grid_of_fractions_misses_the_multipliers_tell(make, monkeypatch, name, missed):
    build, channels = LOOPS[name]
    loop = build(make)
    monkeypatch.setattr(module, "_crossings", lambda _family, _count: missed)
    assert is_the_first(loop, channels, sampled_delay(loop, channels))


def test_of_a_delay_of_many_samples_the_crossing_is_taken_for_granted(make, monkeypatch):
    family = module._of_torques(rigid(make), [0])
    assert not family.unstable(0.1)
    assert family.unstable(9.7)
    monkeypatch.setattr(module._Family, "multiplier", lambda _self, _t: 0.5)
    assert [family.unstable(t) for t in (598.0, 598.1)] == [False, True]  # of 600 states and more


@pytest.mark.parametrize(("largest", "found"), [(80, 40.0), (100, 10.0)])
def test_maps_that_are_too_large_are_not_looked_at_on_the_way(make, monkeypatch, largest, found):
    # 6 states and, at 40 samples of delay, 2 times 40 torques on their way
    family = module._of_torques(coupled(make), [0, 1])
    monkeypatch.setattr(module, "_LARGEST", largest)
    monkeypatch.setattr(module._Family, "multiplier", lambda _self, t: 0.5 if t < 10 else 2.0)
    assert module._earlier(family, 40.0, 4.0) == pytest.approx(found, rel=1e-6)


def test_a_continuous_delay_is_the_smallest_lag_over_its_frequency():
    crossovers = GainCrossovers(frequency=np.array([2.0, 5.0, 0.1]), lag=np.array([1.0, 2.0, 0.3]))
    assert continuous_delay(crossovers) == pytest.approx(0.4)
    assert continuous_delay(GainCrossovers(frequency=np.zeros(0), lag=np.zeros(0))) == np.inf


def test_where_multipliers_only_touch_the_circle_nothing_is_lost(make, monkeypatch):
    loop = rigid(make)
    real = module._crossings

    def with_another(family, count):  # a crossing after which the loop is stable still
        return [0.3, *real(family, count)]

    expected = sampled_delay(loop, [0])
    monkeypatch.setattr(module, "_crossings", with_another)
    assert sampled_delay(loop, [0]) == expected


@pytest.mark.parametrize(("turns", "misses"), [(11.9, False), (12.1, True)])
def test_modes_of_more_than_twelve_turns_in_a_sample_may_hide_bands(make, turns, misses):
    assert may_miss_bands(ringing(make, 2 * np.pi * turns / T, damping=1e-5)) == misses


def test_only_modes_that_a_sampled_loop_feels_hide_bands(make):
    fast = 2 * np.pi * 30.3 / T
    assert may_miss_bands(ringing(make, fast, damping=1e-6))
    assert not may_miss_bands(ringing(make, fast, damping=1e-6, moved=1e-5))
    assert not may_miss_bands(ringing(make, fast, damping=0.05))
    whole = ringing(make, 2 * np.pi * 30 / T, damping=1e-6)  # turns that a held torque cancels
    assert not may_miss_bands(whole)
    continuous = make["linear"]([[1]], [[0]], [[1e8]], [[-4]], [[-3]])
    assert not may_miss_bands(continuous)


def with_a_late_reading(loop, j, delay):
    """Largest multiplier when reading j is late, from the state of the arm at every sample before.

    States are x, z and torques of so many samples as the delays span.
    """
    A, B, period = loop.plant.A_state, loop.plant.B_state, loop.sample_time
    n, m, n_z = len(A), B.shape[1], len(loop.F)
    kept = int(delay // period) + 2 + int(loop.delay // period) + 1
    size = n * kept + n_z + m * kept

    def held(time):
        pair = np.zeros((n + m, n + m))
        pair[:n, :n], pair[:n, n:] = A * time, B * time
        step = scipy.linalg.expm(pair)
        return step[:n, :n], step[:n, n:]

    def state_after(samples, time):
        """Rows of the state at `time` after the sample so many samples ago."""
        rows = np.zeros((n, size))
        whole, part = divmod(loop.delay, period)
        start = n * samples
        torques = n * kept + n_z + m * (samples + int(whole) - 1)  # of the sample that acts last
        old = min(part, time)
        (first, older), (second, newer) = held(old), held(time - old)
        rows[:, start : start + n] = second @ first
        rows[:, torques : torques + m] += newer
        rows[:, torques + m : torques + 2 * m] += second @ older
        return rows

    read = loop.signals
    late = int(delay // period)
    f = delay - late * period
    seen = np.hstack([read.C, np.zeros((len(read.C), size - n))])
    if f:
        seen[j] = read.C[j] @ state_after(late + 1, period - f)
    else:
        seen[j] = 0.0
        seen[j, n * late : n * (late + 1)] = read.C[j]
    torque = read.by_tau @ seen
    torque[:, n * kept : n * kept + n_z] += loop.integral_gain
    step = np.zeros((size, size))
    step[n : n * kept, : n * (kept - 1)] = np.eye(n * (kept - 1))
    law = slice(n * kept, n * kept + n_z)
    step[law] = period * read.by_z @ seen
    step[law, law] += np.eye(n_z) + period * loop.F
    first = n * kept + n_z
    step[first : first + m] = torque
    step[first + m :, first:-m] = np.eye(m * (kept - 1))
    # the state of the next sample, by torques of which the newest is the one asked for now
    whole, part = divmod(loop.delay, period)
    old = part
    (before, older), (after, newer) = held(old), held(period - old)
    step[:n, :n] = after @ before
    for share, at in ((newer, int(whole)), (after @ older, int(whole) + 1)):
        if at == 0:
            step[:n] += share @ torque
        else:
            step[:n, first + m * (at - 1) : first + m * at] += share
    return np.abs(np.linalg.eigvals(step)).max()


READINGS = {
    "rigid": rigid,
    "late": lambda make: rigid(make, delay=1.4 * T),
    "coupled": coupled,
    "ringing": lambda make: ringing(make, 12.0),
}


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("j", [0, 1])
def test_a_reading_may_be_as_late_as_a_multiplier_says(make, name, j):
    loop = READINGS[name](make)
    found = reading_delay(loop, j)
    if not np.isfinite(found):
        assert with_a_late_reading(loop, j, 30.3 * T) < 1
        return
    assert with_a_late_reading(loop, j, 0.999 * found) < 1
    assert with_a_late_reading(loop, j, 1.001 * found) > 1
    before = np.linspace(0.0, 0.999 * found, 40)
    assert all(with_a_late_reading(loop, j, x) < 1 for x in before)
