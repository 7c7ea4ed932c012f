"""Linear fractional forms of laws that are made up, of known dependence and known rank."""

from dataclasses import dataclass

import numpy as np
import pytest

from flexctl.errors import ComputationError
from flexctl.robustness.lft.controller_lft import ErrorGroup, factor_law

P = 4


@dataclass
class MadeUp:
    """A law of four parts: J(delta) as a function that counts its evaluations."""

    of: object
    parts: int = P
    evaluations: int = 0

    def __call__(self, errors):
        self.evaluations += 1
        return self.of(errors)


def dense(rng):
    return rng.normal(size=(3, 1)) @ rng.normal(size=(1, 8))


def composite(seed, springs=2):
    """Demand u = (u_0 + sum beta_j U_j) x of springs, deflection sum (1 - beta_i) g_i c_i' u."""
    rng = np.random.default_rng(seed)
    base, run_ahead = rng.normal(size=(3, 8)), [dense(rng) for _ in range(springs)]
    gives = [rng.normal(size=(3, 1)) @ rng.normal(size=(1, 3)) for _ in range(P)]

    def law(errors):
        beta = errors / (1 + errors)
        u = base + sum(b * U for b, U in zip(beta, run_ahead, strict=False))
        return u + 1e-3 * sum((1 - b) * G for b, G in zip(beta, gives, strict=True)) @ u

    return law


def forces(seed):
    """J = J_0 + sum delta_i L_i."""
    rng = np.random.default_rng(seed)
    J, L = rng.normal(size=(3, 8)), [dense(rng) for _ in range(P)]
    return lambda errors: J + sum(d * part for d, part in zip(errors, L, strict=True))


def alone(sizes=(1.0,) * P):
    return [ErrorGroup(name=f"e{k}", parts=(k,), range=size) for k, size in enumerate(sizes)]


GROUPS = {
    "each": alone(),
    "sized": alone((0.5, 2.0, 1.0, 0.1)),
    "pairs": [ErrorGroup(name=f"e{k}", parts=(k, k + 2)) for k in range(2)],
    "all": [ErrorGroup(name="all", parts=tuple(range(P)))],
    "none": [],
}


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("law", [composite(1), composite(2, springs=1), forces(3)])
def test_the_form_is_the_law(law, groups):
    form = factor_law(MadeUp(law), groups)
    delta, errors = np.array([0.9, -0.7, 0.3, 1.7])[: len(groups)], np.zeros(P)
    for group, value in zip(groups, delta, strict=True):
        errors[list(group.parts)] = group.range * value
    expected = law(errors) - law(np.zeros(P))

    np.testing.assert_allclose(form.change(delta), expected, atol=1e-12)
    assert sum(form.sizes) == len(form.Q)


def test_channels_are_as_few_as_the_chain_needs():
    # a mode gives way in one direction; the one spring has what runs ahead and gives way itself
    assert factor_law(MadeUp(composite(4, springs=1)), alone()).sizes == (2, 1, 1, 1)
    assert factor_law(MadeUp(forces(5)), alone()).sizes == (1, 1, 1, 1)


@pytest.mark.parametrize(("law", "evaluations"), [(forces(6), 14), (composite(6, springs=0), 14)])
def test_pairs_are_not_evaluated_where_there_are_none(law, evaluations):
    # without error, at three errors of four groups, and once for the check
    counted = MadeUp(law)
    factor_law(counted, alone())

    assert counted.evaluations == evaluations


def products(power):
    """Make a law in which a force meets a compliance, or three compliances meet."""
    J, errors = forces(7), {"force": lambda d: d[0] * d[1] / (1 + d[1])}
    errors["three"] = lambda d: np.prod(d[:3] / (1 + d[:3]))
    return lambda d: J(d) + errors[power](d)


@pytest.mark.parametrize("size", [1.0, 1e-4])
@pytest.mark.parametrize("power", ["force", "three"])
def test_other_products_are_refused_however_small_the_errors(power, size):
    with pytest.raises(ComputationError, match="products of two compliances"):
        factor_law(MadeUp(products(power)), alone((size,) * P))


def test_a_law_that_has_no_value_at_some_error_is_refused():
    with pytest.raises(ComputationError, match="products of two compliances"):
        factor_law(MadeUp(lambda d: np.full((3, 8), np.nan if d.all() else 1.0)), alone())
