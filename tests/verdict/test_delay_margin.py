"""Delay margins of sampled loops against the multipliers at one delay after the other."""

import numpy as np
import pytest

from flexctl.loop.linear import sampled_loop
from flexctl.verdict import delay_margin as module
from flexctl.verdict.broken_loop import GainCrossovers
from flexctl.verdict.delay_margin import continuous_delay, may_miss_bands, sampled_delay

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
    family = module._Family(loop=rigid(make), channels=[0])
    assert not family.unstable(0.1)
    assert family.unstable(9.7)
    monkeypatch.setattr(module._Family, "multiplier", lambda _self, _t: 0.5)
    assert [family.unstable(t) for t in (598.0, 598.1)] == [False, True]  # of 600 states and more


@pytest.mark.parametrize(("largest", "found"), [(80, 40.0), (100, 10.0)])
def test_maps_that_are_too_large_are_not_looked_at_on_the_way(make, monkeypatch, largest, found):
    # 6 states and, at 40 samples of delay, 2 times 40 torques on their way
    family = module._Family(loop=coupled(make), channels=[0, 1])
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
