"""Operations of a sample: what a sampled law computes, without what only a simulation needs."""

import numpy as np
import pytest

from flexctl.control import design_controller, step_of_law
from flexctl.model.record import BasisChoice
from flexctl.plant import count_operations

T = 1e-3
ENCODER = {"kind": "encoder"}
GAUGE = {"kind": "gauge", "xi": 0.1, "noise": 1e-3}
DIFFERENCE = {"kind": "difference"}
NOISE = {"noise": 1e-5}


def controller(make, instruments, **tables):
    tables = {"gains": {"Gp": [60.0], "Gv": [12.0]}, "instruments": instruments} | tables
    design = make["design"]([0.0], [0.5], "joint-pd", loop={"sample_time": T}, **tables)
    return design_controller(make["single"](), design, BasisChoice(kind="modes", order=1),
                             interpreted=True)  # fmt: skip


@pytest.mark.parametrize("encoder", [{}, NOISE, {"delay": 3 * T}, NOISE | {"delay": T}])
def test_a_difference_costs_a_subtraction_and_a_division(make, encoder):
    # tau = Gp (q_d - y) + Gv (v_d - (y - y_before)/T), y_before+ = y; its sign may cost a negation
    law = step_of_law(controller(make, [ENCODER | encoder, DIFFERENCE]))
    counted = count_operations(law)
    assert (counted.mul, counted.add, counted.kinds["div"]) == (2, 4, 1)
    assert counted.other - counted.kinds.get("neg", 0) == 1


@pytest.mark.parametrize("observer", [False, True])
def test_it_gives_the_states_of_the_next_sample(make, observer):
    own = [ENCODER | NOISE | {"delay": 2 * T}, GAUGE] if observer else [ENCODER, DIFFERENCE]
    made = controller(make, own, **({"observer": {}} if observer else {}))
    rng = np.random.default_rng(0)
    arguments = [rng.normal(size=made.law.numel_in(k)) for k in range(made.law.n_in())]
    z = arguments[1]
    z[made.noise_rows] = 0  # drawn by runs
    tau, rate = (np.array(part).ravel() for part in made.law(*arguments))
    found, after = (np.array(part).ravel() for part in step_of_law(made)(*arguments))
    np.testing.assert_allclose(found, tau, rtol=1e-12)
    np.testing.assert_allclose(after, z + T * rate, rtol=1e-9, atol=1e-9 * np.abs(z).max())
