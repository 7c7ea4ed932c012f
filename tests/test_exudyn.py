"""Exudyn's floating-frame links move as ours without foreshortening.

Needs the extra `bench`, which `make test-all` installs.
"""

from pathlib import Path

import numpy as np
import pytest

from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TIME, STEPS = 10.0, 20_000  # of ours: RK4 at 0.5 ms, converged to 1e-7


@pytest.fixture(scope="module")
def libraries():
    """The Canadarm and its Exudyn twin, from benchmarks/libraries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        from libraries import canadarm, exudyn_arm

        yield canadarm, exudyn_arm


@pytest.fixture(scope="module")
def ours(libraries, tmp_path_factory):
    """Joint angles (101, 3) and tip (101, 2) of the forced run, every 0.1 s."""
    canadarm, _ = libraries
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXCTL_CACHE", str(tmp_path_factory.mktemp("cache")))
        plant = assemble_plant(canadarm.canadarm(), BasisChoice(kind="modes", order=2))
        n, h = plant.n, TIME / STEPS
        torques = canadarm.torques(np.linspace(0, TIME, 2 * STEPS + 1))

        def f(x, tau):
            return np.concatenate([x[n:], plant.forward_dynamics(x[:n], x[n:], tau)])

        x, path = np.zeros(2 * n), []
        for k in range(STEPS + 1):
            if k % (STEPS // 100) == 0:
                path.append(np.concatenate([x[:3], plant.tip(x[:n])[:2]]))
            start, middle, end = torques[np.minimum([2 * k, 2 * k + 1, 2 * k + 2], 2 * STEPS)]
            a = f(x, start)
            b = f(x + h / 2 * a, middle)
            c = f(x + h / 2 * b, middle)
            x = x + h / 6 * (a + 2 * b + 2 * c + f(x + h * c, end))
        return np.split(np.array(path), [3], axis=1)


@pytest.fixture(scope="module")
def errors(libraries, ours):
    """Largest errors of Exudyn's joint angles [rad] and tip [m] against ours, by step."""
    canadarm, exudyn_arm = libraries

    def of(steps):
        torques = canadarm.torques(np.linspace(0, TIME, steps + 1))
        _, angles, tip = exudyn_arm.exudyn_arm(canadarm.canadarm()).run(torques, TIME)
        return [np.abs(a - b).max() for a, b in zip((angles, tip), ours, strict=True)]

    return np.array([of(steps) for steps in (1000, 2000, 4000)])


@pytest.mark.slow
def test_joint_angles_of_the_forced_canadarm(errors):
    # the second modes ring: a step of 2.5 ms follows them to 7e-5 rad, its error falls with h^2
    assert errors[-1, 0] < 1e-4
    assert errors[0, 0] > 6 * errors[-1, 0]


@pytest.mark.slow
def test_tip_of_the_forced_canadarm(errors):
    assert errors[-1, 1] < 2e-5
    assert np.log2(errors[:-1, 1] / errors[1:, 1]) == pytest.approx(2, abs=0.2)
