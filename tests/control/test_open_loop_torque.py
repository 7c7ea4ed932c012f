"""The law that applies given torques: it looks at nothing but its reference."""

import numpy as np
import pytest

from flexctl.control import design_controller


@pytest.fixture(scope="module")
def controller(make):
    return design_controller(make["two-link"](), make["design"]([0.1, 0.4], [0.2, -0.3], "torque"))


@pytest.mark.parametrize("seed", range(3))
def test_the_torque_is_the_third_signal_of_the_reference(controller, seed):
    rng = np.random.default_rng(seed)
    sizes = [controller.law.numel_in(k) for k in range(controller.law.n_in())]
    signals = [rng.normal(size=size) for size in sizes]
    tau, z_rate = controller.law(*signals)

    np.testing.assert_array_equal(np.array(tau).ravel(), signals[4])
    assert z_rate.numel() == controller.n_state == 0


def test_it_says_that_nothing_is_measured(controller):
    assert controller.assumptions[0].endswith("nothing is measured")
    assert controller.feedback is None
