"""A basis that asks for a sliding link's exact modes at every length."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from pydantic import ValidationError

from flexctl.beam.assumed_modes import ModeShapes
from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.load_path import SlidingLine
from flexctl.errors import ComputationError, InputError
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant import sliding
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.plant.stiffness_error import part_energies
from tests.arms import plant_of, wrong_plant

RRP = "theodore-ghosal-rrp"
ECCENTRIC = (
    "payload.com=[0.0, 0.0, 0.02]",
    "payload.inertia=[5e-4, 5e-4, 2e-4]",
    'link3.tip_load.include=["M", "J", "D"]',
)
LOADS = {
    (): SlidingLine(mass_per_length=0.331, mass=0.0828),
    ECCENTRIC: SlidingLine(
        mass_per_length=0.331,
        mass=0.0828,
        inertia=5e-4 + 0.0828 * 0.02**2,
        first_moment=0.0828 * 0.02,
    ),
}
LENGTHS = [0.1, 0.3, 0.65, 1.0, 1.3]


@cache
def rrp_plant(modes, order=2, settings=(), engine="recursion", kind="modes"):
    arm = apply_settings(load_model(RRP), settings)
    return plant_of(arm, kind, order, modes, engine=engine)


def exact(settings=(), order=2):
    return rrp_plant("exact", order, settings)


def rows(plant, line):
    return [i for i, name in enumerate(plant.coordinates) if name.startswith(line)]


def stiffness(line, length, n=2):
    """EI / l^3 beta^4: of modes with m(psi, psi) = 1, from roots alone."""
    return 1165.4916 / length**3 * roots_along(n, line.loads([length]))[0] ** 4


@pytest.mark.slow_but("1.3-mass", "1.0-mass", "0.3-mass")
@pytest.mark.parametrize("settings", LOADS, ids=["mass", "body"])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_clamped_link_has_its_exact_frequencies_at_every_length(settings, length):
    plant = exact(settings)
    q, own = plant.straight(np.array([0.0, 0.0, length])), rows(plant, "link3.x")
    M, K = plant.mass_matrix(q), plant.elastic_stiffness(q)
    block, expected = np.ix_(own, own), stiffness(LOADS[settings], length)
    # rho A l m(psi, psi) with m = 1, and no coupling: modes are orthogonal with their own load
    np.testing.assert_allclose(M[block], 0.331 * length * np.eye(2), atol=1e-8 * 0.331 * length)
    np.testing.assert_allclose(np.diag(K[block]), expected, rtol=1e-8)
    omega = np.sqrt(np.linalg.eigvals(np.linalg.solve(M[block], K[block])))
    np.testing.assert_allclose(np.sort(omega), np.sqrt(expected / (0.331 * length)), rtol=1e-11)


@pytest.mark.slow  # takes long
def test_the_engines_agree():
    rng = np.random.default_rng(1)
    first, second = (
        rrp_plant("exact", 1, ECCENTRIC, engine) for engine in ("recursion", "lagrange")
    )
    q = np.array([0.4, -0.7, 0.7, *0.02 * rng.normal(size=first.n - 3)])
    v, tau = rng.normal(size=first.n), rng.normal(size=3)
    found, expected = (plant.forward_dynamics(q, v, tau) for plant in (first, second))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.slow_but("mass-inverse_dynamics")
@pytest.mark.parametrize("name", ["mass_matrix", "inverse_dynamics"])
@pytest.mark.parametrize("settings", LOADS, ids=["mass", "body"])
def test_roots_in_the_graph_move_the_arm_as_the_table_does(settings, name):
    rng = np.random.default_rng(7)
    roots, table = (rrp_plant(modes, 1, settings) for modes in ("roots", "exact"))
    q = np.array([0.4, -0.7, 0.4, *0.01 * rng.normal(size=roots.n - 3)])
    arguments = (q, *rng.normal(size=(2, roots.n)))[: 1 if name == "mass_matrix" else 3]
    found, expected = (getattr(plant, name)(*arguments) for plant in (roots, table))
    # modes of the table are within 1e-9; what follows from their change within its derivatives
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * np.abs(expected).max())


def test_a_fixed_basis_is_the_default_and_has_the_modes_of_its_pose():
    assert BasisChoice() == BasisChoice(sliding="fixed")
    assert all(not body.mixes for body in rrp_plant("fixed").bodies)


def test_links_that_turn_keep_their_modes():
    for own, other in zip(exact().bodies[:2], rrp_plant("fixed").bodies[:2], strict=True):
        assert own.planes == other.planes
        assert not own.mixes


def test_without_a_load_the_modes_are_the_same_at_every_length():
    arm = load_model(RRP)
    last = arm.links[2].model_copy(update={"tip_load": None})
    arm = arm.model_copy(update={"links": (*arm.links[:2], last)})
    plant = assemble_plant(arm, BasisChoice(sliding="exact"), interpreted=True)
    assert all(isinstance(shapes, ModeShapes) for shapes in plant.bodies[2].planes.values())
    assert not plant.bodies[2].mixes


def test_planes_and_plants_share_one_fit():
    mixes = exact().bodies[2].mixes
    assert mixes["x"] is mixes["y"]
    again = assemble_plant(load_model(RRP), BasisChoice(sliding="exact"), interpreted=True)
    assert again.bodies[2].mixes["x"] is mixes["x"]


def test_the_next_command_finds_the_modes_that_this_one_made(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    arguments = 1, LOADS[()], 0.5, 0.7
    first = sliding._fitted.__wrapped__(*arguments)
    monkeypatch.delattr(sliding, "fit_sliding_shapes")
    again = sliding._fitted.__wrapped__(*arguments)
    assert (again.shortest, again.longest) == (0.5, 0.7)
    np.testing.assert_array_equal(again.mix, first.mix)
    np.testing.assert_array_equal(again.base.curvatures, first.base.curvatures)
    np.testing.assert_array_equal(again.error, first.error)


def test_a_cache_that_is_no_folder_does_not_matter(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.write_text("a file where the folder should be")
    monkeypatch.setenv("FLEXCTL_CACHE", str(folder))
    assert sliding._fitted.__wrapped__(1, LOADS[()], 0.5, 0.7).longest == 0.7


def flip(whole, place):
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


BROKEN = {
    "empty": lambda whole: whole[:0],
    "not sealed": lambda whole: whole.partition(b"flexctl:")[0],
    "cut": lambda whole: whole[:-1],
    "a number": lambda whole: flip(whole, whole.index(b"mix.npy") + 200),
    "the way it is packed": lambda whole: flip(whole, whole.index(b"PK\x01\x02") + 10),
    "a word that it needs": lambda whole: flip(whole, whole.index(b"PK\x01\x02") + 8),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_modes_in_the_cache_that_are_not_as_they_were_written_are_made_again(
    fault, tmp_path, monkeypatch
):
    monkeypatch.setenv("FLEXCTL_CACHE", str(tmp_path))
    arguments = 1, LOADS[()], 0.5, 0.7
    made = sliding._fitted(*arguments)
    monkeypatch.setattr(sliding, "fit_sliding_shapes", lambda *_: made)
    sliding._fitted.__wrapped__(*arguments)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(BROKEN[fault](whole))
    again = sliding._fitted.__wrapped__(*arguments)

    np.testing.assert_array_equal(again.mix, made.mix)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("length", LENGTHS)
def test_parts_of_the_stiffness_are_the_modes_of_the_present_length(length):
    plant = exact()
    q = plant.straight(np.array([0.2, 0.3, length]))
    own = rows(plant, "link3.y")
    q[own] = [2e-3, -1e-3]
    energies = np.array(ca.evalf(part_energies(plant.bodies, ca.SX(ca.DM(q))))).ravel()
    found = dict(zip(plant.stiffness_parts, energies, strict=True))
    expected = stiffness(LOADS[()], length) * q[own] ** 2 / 2
    np.testing.assert_allclose([found["link3.y.1"], found["link3.y.2"]], expected, rtol=1e-8)
    assert sum(energies) == pytest.approx(plant.energies(q, np.zeros(plant.n))[1], rel=1e-8)


def test_one_error_of_all_parts_scales_the_stiffness_and_what_it_does_along_the_slide():
    rng, factor = np.random.default_rng(2), 1.3
    wrong = wrong_plant(load_model(RRP), exact().basis, factor - 1)
    other = exact((f"links.EI=*{factor}",))
    q = np.array([0.1, 0.2, 0.5, *0.01 * rng.normal(size=wrong.n - 3)])
    found, expected = (plant.elastic_force(q) for plant in (wrong, other))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-6)
    assert abs(expected[2]) > 1e-2


@pytest.mark.parametrize("length", [0.3, 1.0])
def test_damping_is_that_of_fine_elements_in_the_modes(length):
    # D belongs to the link: of the shapes alone, only their space differs
    plant, fine = exact(), rrp_plant("fixed", 16, kind="elements")
    q = np.array([0.0, 0.0, length])
    own, nodes = rows(plant, "link3.x"), rows(fine, "link3.x")
    D, D_fine = (p.damping(p.straight(q)) for p in (plant, fine))
    shapes = plant.bodies[2].shapes_at("x", length)
    xi, S = np.arange(1, 17) / 16, np.zeros((32, 2))
    S[::2], S[1::2] = shapes.value(xi).T, shapes.slope(xi).T / length
    expected = S.T @ D_fine[np.ix_(nodes, nodes)] @ S
    np.testing.assert_allclose(D[np.ix_(own, own)], expected, rtol=0, atol=2e-3 * expected.max())


def in_fixed_modes(plant, fixed, q, v):
    """State of `fixed` modes that has the deflection of link 3 and its rate at fixed xi."""
    xi = np.linspace(0.02, 1.0, 50)
    own, modes, h = rows(plant, "link3.x"), rows(fixed, "link3.x"), 1e-6

    def coordinates(s):
        shapes = plant.bodies[2].shapes_at("x", q[2] + s * v[2])
        target = shapes.value(xi).T @ (q[own] + s * v[own])
        psi = fixed.bodies[2].planes["x"].value(xi).T
        return np.linalg.lstsq(psi, target, rcond=None)[0]

    positions, rates = fixed.straight(q[:3]), np.append(v[:3], np.zeros(fixed.n - 3))
    positions[modes] = coordinates(0.0)
    rates[modes] = (coordinates(h) - coordinates(-h)) / (2 * h)
    return positions, rates


@pytest.mark.parametrize("own_rate", [0.0, 0.05])
def test_what_is_damped_is_the_rate_of_the_deflection_whatever_the_modes(own_rate):
    # at rest of its own coordinates too: the length alone changes their modes
    plant, fixed = exact(), rrp_plant("fixed", 8)
    q, v = plant.straight(np.array([0.0, 0.0, 0.4])), np.zeros(plant.n)
    own = rows(plant, "link3.x")
    v[2], q[own], v[own] = 3.0, [5e-3, -2e-3], own_rate
    positions, rates = in_fixed_modes(plant, fixed, q, v)
    found, expected = v @ plant.damping(q) @ v, rates @ fixed.damping(positions) @ rates
    assert found == pytest.approx(expected, rel=5e-3)


def test_the_damping_matrix_is_symmetric_and_takes_energy_only():
    plant = exact()
    q = plant.straight(np.array([0.0, 0.0, 0.4]))
    q[3:] = 0.01 * np.random.default_rng(3).normal(size=plant.n - 3)
    D = plant.damping(q)
    np.testing.assert_allclose(D, D.T, rtol=0, atol=1e-12 * np.abs(D).max())
    assert np.linalg.eigvalsh(D).min() > -1e-12 * np.abs(D).max()
    assert D[2, 2] > 0


BAD = {
    "no limits": (("link3.limits={}",), "limits.position: expected the range of its modes, as the"),
    "no length": (
        ("link3.limits.position=[0.0, 1.3]",),
        "expected a free length above 0, as the ba",
    ),
    "no body": (
        (*ECCENTRIC, 'link3.tip_load.include=["M", "D"]'),
        "link3, modes of every length: ",
    ),
}


@pytest.mark.parametrize(("settings", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused(settings, said):
    with pytest.raises(InputError, match="link3") as refused:
        rrp_plant("exact", 2, settings)
    assert said in str(refused.value)


def test_a_load_beyond_the_proof_is_refused_by_name():
    heavy = ("payload.mass=8.0", "payload.com=[0.0, 0.0, 1.0]", *ECCENTRIC[1:])
    with pytest.raises(ComputationError, match=r"link3, modes of every length: .* shorter range"):
        rrp_plant("exact", 2, heavy)


@pytest.mark.parametrize("length", [0.09, 1.299 * 1.06])
def test_a_pose_beyond_the_modes_is_refused(length):
    with pytest.raises(InputError, match=r"pose\.joint3: expected"):
        exact().pose({"joint3": length})
    with pytest.raises(InputError, match=r"pose\.joint3: expected"):
        linearise(exact(), exact().straight(np.array([0.0, 0.0, length])))


def test_the_model_ends_where_its_modes_do():
    low, high = exact().valid_range
    assert low[2] == pytest.approx(0.095)
    assert high[2] == pytest.approx(1.313)  # a hundredth of the beam slips out before
    assert rrp_plant("fixed").valid_range[0][2] == pytest.approx(1.3e-3)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kind": "elements"}, "sliding: expected"),
        ({"drop_above": 1e4}, "drop_above: expected no such key"),
        ({"sliding": "exactly"}, "'fixed', 'exact' or 'roots'"),
    ],
)
def test_a_basis_that_cannot_be_is_refused(more, said):
    with pytest.raises(ValidationError, match=said):
        BasisChoice.model_validate({"kind": "modes", "sliding": "exact", **more})
