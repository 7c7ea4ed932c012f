"""Evaluations of arms with several joints, figured again from what they export and nothing else.

The run is read back from its NetCDF file, the arm from `to_control()`; the law, joint PD, is
written down here. Margins of gain and phase are taken by moving these until an eigenvalue of the
closed loop reaches the axis, and not from a frequency response.
"""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from scipy.interpolate import make_interp_spline
from scipy.linalg import expm
from scipy.optimize import brentq, minimize_scalar

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.verdict.evaluation import evaluate
from flexctl.view.signals import to_dataset, write_netcdf
from flexctl.view.to_json import to_json

EARTH = (0.0, -9.81, 0.0)
BEND = {"EI": {"y": 40.0}, "damping_ratio": [0.02]}


def rod(length, mass, **more):
    link = {"joint": "revolute", "length": length, "dh": {"a": length}}
    return link | {"mass_per_length": mass / length, "joint_inertia": 0.05} | more


def vertical():
    """Two links in a vertical plane, the first bends, the second behind a spring; torque limits."""
    drive = {"rotor_inertia": 0.002, "gear": 8.0, "stiffness": 120.0, "damping": 0.6}
    first = rod(0.5, 0.6, **BEND, limits={"torque": 11.0})
    second = rod(0.4, 0.4, flexible_joint=drive, limits={"torque": 2.6})
    return [first, second], EARTH, {"mass": 0.2}


def sliding():
    """A turning link that carries a bending one that slides, across gravity."""
    first = {"joint": "revolute", "dh": {"alpha": np.pi / 2}, "joint_inertia": 0.5}
    second = {"joint": "prismatic", "total_length": 1.0, "mass_per_length": 0.4}
    second |= {"EI": {"x": 20.0}, "damping_ratio": 0.02, "joint_inertia": 0.4}
    return [first, second], (0.0, 0.0, -3.0), {"mass": 0.2}


def three():
    """Turning, behind a spring, and sliding: three joints and no gravity, integral action."""
    drive = {"rotor_inertia": 0.05, "stiffness": 200.0, "damping": 1.5}
    first, second = rod(0.5, 0.6, **BEND), rod(0.3, 0.4, flexible_joint=drive)
    second["dh"] = {"a": 0.3, "alpha": np.pi / 2}
    third = {"joint": "prismatic", "joint_inertia": 1.1}
    return [first, second, third], (0.0, 0.0, 0.0), {"mass": 0.4, "inertia": [2e-3] * 3}


CASES = {
    "vertical": (vertical, [-1.3, 0.2], [-0.9, 0.8], [60.0, 16.0], [9.0, 1.6], None),
    "sliding": (sliding, [0.2, 0.5], [0.8, 0.7], [30.0, 60.0], [9.0, 14.0], None),
    "three": (three, [0.1, -0.3, 0.1], [0.5, 0.2, 0.3], [50.0, 9.0, 70.0], [9.0, 2.0, 16.0], 20.0),
}
END, LAST, BAND = 0.4, 0.7, 0.008
TENTH = LAST - (LAST - END) / 10  # when the last tenth after the motion begins


# the vertical arm takes as long as both others
PARAMS = [pytest.param("vertical", marks=pytest.mark.slow), "sliding", "three"]


@pytest.fixture(scope="module", params=PARAMS)
def case(request, make, tmp_path_factory):
    """An evaluation, its exported run, the arm at rest as `control` has it, and the gains."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLEXCTL_CC", "none")
        build, start, end, Gp, Gv, Gi = CASES[request.param]
        links, gravity, payload = build()
        arm = make["arm"](links, gravity, payload)
        gains = {"Gp": Gp, "Gv": Gv} | ({"Gi": [Gi]} if Gi else {})
        basis = {"kind": "modes", "order": 1}
        loop = {"duration": LAST, "settle_within": BAND}
        tables = {"gains": gains, "basis": basis, "loop": loop, "duration": END}
        design = make["design"](start, end, "joint-pd", **tables)
        truth = assemble_plant(arm, BasisChoice(kind="modes", order=1), interpreted=True)
        controller = design_controller(arm, design)
        found = evaluate(close_around(controller, truth))
    path = tmp_path_factory.mktemp("run") / f"{request.param}.nc"
    write_netcdf(path, to_dataset(found.trajectory, arm, {}))
    with xr.open_dataset(path, engine="h5netcdf") as run:
        answer, data = to_json(found), run.load()
    rest = truth.straight(np.array(answer["rest"]["joint"]))
    system = linearise(truth, rest).to_control()
    sag = linearise(truth, truth.straight(np.array(end))).q0
    limits = np.array([link.get("limits", {}).get("torque", np.inf) for link in links])
    return SimpleNamespace(
        answer=answer, run=data, A=system.A, B=system.B, m=len(links), limits=limits,
        drives=list(truth.drives), gains=(np.array(Gp), np.array(Gv), Gi), end=np.array(end),
        rest_tip=truth.tip(sag),
    )  # fmt: skip


def closed(case, factor=None, delay=0.0):
    """State matrix of the loop; `factor` (m,) multiplies the torques of the law, may be complex."""
    A, B, m, n = case.A, case.B, case.m, len(case.A) // 2
    Gp, Gv, Gi = case.gains
    seen = np.zeros((2 * m, 2 * n))
    for j, row in enumerate(case.drives):
        seen[j, row], seen[m + j, n + row] = 1, 1
    law = -np.hstack([np.diag(Gp), np.diag(Gv)]) @ seen
    if Gi:
        A = np.block([[A, np.zeros((2 * n, m))], [seen[:m], np.zeros((m, m))]])
        B, law = np.vstack([B, np.zeros((m, m))]), np.hstack([law, -Gi * np.eye(m)])
    if delay is None:
        return A, B, law
    return A + B @ (np.diag(np.ones(m) if factor is None else factor) @ law)


def abscissa(case, factor=None):
    return np.linalg.eigvals(closed(case, factor)).real.max()


def integral(t, y):
    return sum((t[1:] - t[:-1]) * (y[1:] + y[:-1])) / 2


def finely(t, rows):
    """Signals 20 times as finely as the run has them, by a spline of fifth order: (M,), (k, M)."""
    fine = np.unique(np.concatenate([np.linspace(0.0, LAST, 20 * len(t)), t, [TENTH]]))
    return fine, make_interp_spline(t, np.asarray(rows).T, k=5)(fine).T


def size(error):
    return np.sqrt((error**2).sum(axis=0))


@pytest.mark.slow_but("three")
def test_tracking(case):
    run, t = case.run, case.run.t.values
    moving = t <= END * (1 + 1e-12)
    error = np.sqrt(((run.tip - run.desired_tip) ** 2).sum("axis")).values
    fine, joints = finely(t, run.q[: case.m].values - run.desired.values)
    largest = size(finely(t, run.tip.values - run.desired_tip.values)[1])[fine <= t[moving][-1]]
    joints = np.abs(joints[:, fine <= t[moving][-1]]).max(axis=1)
    found = case.answer["tracking"]

    assert t[moving][-1] == pytest.approx(END)
    assert found["tip_error_max"] == pytest.approx(largest.max(), rel=1e-6)
    mean = integral(t[moving], error[moving] ** 2) / END
    assert found["tip_error_rms"] == pytest.approx(mean**0.5, rel=1e-12)
    np.testing.assert_allclose(found["joint_error_max"], joints, rtol=1e-6)


@pytest.mark.slow_but("three")
def test_residual_and_settling(case):
    run, t = case.run, case.run.t.values
    fine, off = finely(t, run.tip.values - case.rest_tip[:, None])
    error, after = size(off), fine >= END * (1 - 1e-12)
    found = case.answer["residual"]

    assert found["tip_error_max"] == pytest.approx(error[after].max(), rel=1e-6)
    late = error[fine >= TENTH].max()
    assert found["tip_error_end"] == pytest.approx(late, rel=1e-6)
    outside = fine[after & (error > BAND)]
    if late > BAND:
        assert found["settling_time"] is None
    else:
        expected = outside[-1] - END if len(outside) else 0.0
        assert found["settling_time"] == pytest.approx(expected, abs=1.01 * np.diff(fine).max())


def test_effort(case):
    run, t = case.run, case.run.t.values
    tau, rates = run.tau.values, run.v.values[case.drives]
    found = case.answer["effort"]

    each = [integral(t, np.abs(a * b)) for a, b in zip(tau, rates, strict=True)]
    assert found["energy"] == pytest.approx(sum(each), rel=1e-10)
    whole = integral(t, np.abs((tau * rates).sum(axis=0)))
    assert abs(found["energy"] - whole) > 1e-3 * found["energy"]  # joints do work on each other
    np.testing.assert_allclose(found["peak"], np.abs(tau).max(axis=1), rtol=1e-12)
    rms = [(integral(t, row**2) / LAST) ** 0.5 for row in tau]
    np.testing.assert_allclose(found["rms"], rms, rtol=1e-10)
    at_limit = np.abs(tau) >= case.limits[:, None] * (1 - 1e-9)
    seconds = [integral(t, row.astype(float)) for row in at_limit]
    np.testing.assert_allclose(found["saturated_seconds"], seconds, atol=4 * np.diff(t).max())
    assert not np.isfinite(case.limits).any() or max(seconds) > 0.01


def test_rest_and_what_holds_it(case):
    found, (Gp, _, Gi) = case.answer["rest"], case.gains
    offset = np.array(found["joint"]) - case.end
    np.testing.assert_allclose(found["offset"], offset, atol=1e-12)
    limits = [x if np.isfinite(x) else None for x in case.limits]
    assert found["limit"] == limits
    assert found["exists"]
    assert found["holds"]
    if Gi:
        np.testing.assert_allclose(offset, 0, atol=1e-12)
    assert found["tip_offset"] >= 0
    assert (found["tip_offset"] > 1e-5) == (np.abs(offset).max() > 1e-5)
    assert len(found["holding_torque"]) == len(Gp)


def test_poles_and_damping(case):
    poles = np.linalg.eigvals(closed(case))
    found = case.answer["stability"]
    listed = np.array(found["poles"]["re"]) + 1j * np.array(found["poles"]["im"])

    scale = np.abs(poles).max()
    apart = np.abs(listed[:, None] - poles[None, :])
    assert len(listed) == len(poles)
    assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) < 1e-7 * scale
    assert found["spectral_abscissa"] == pytest.approx(poles.real.max(), rel=1e-6)
    expected = (-poles.real / np.abs(poles)).min()
    assert found["min_damping_ratio"] == pytest.approx(expected, rel=1e-6)
    assert found["stable"] is True


def first_loss(lost, values):
    """First of ascending values at which the loop is lost, to 10 digits; infinity for none."""
    for a, b in pairwise(values):
        if lost(b) >= 0:
            return brentq(lost, a, b, xtol=1e-12, rtol=1e-11)
    return np.inf


def channel(case, j, value):
    factor = np.ones(case.m, dtype=complex)
    factor[j] = value
    return factor


def as_number(value):
    return np.inf if value is None else value


@pytest.mark.parametrize("j", [0, 1, 2])
def test_gain_margins(case, j):
    if j >= case.m:
        return
    found = case.answer["margins"]
    up = first_loss(
        lambda x: abscissa(case, channel(case, j, 10 ** (x / 20))), np.arange(0, 81, 1.0)
    )
    down = first_loss(
        lambda x: abscissa(case, channel(case, j, 10 ** (-x / 20))), np.arange(0, 121, 1.0)
    )
    for key, expected in (("gain_up_db", up), ("gain_down_db", down)):
        value = as_number(found[key][j])
        if np.isfinite(expected):
            assert value == pytest.approx(expected, rel=1e-6)
        else:
            assert value > 80
    assert as_number(found["gain_db"][j]) == min(
        as_number(found[k][j]) for k in ("gain_up_db", "gain_down_db")
    )


@pytest.mark.parametrize("j", [0, 1, 2])
def test_phase_margins(case, j):
    if j >= case.m:
        return
    ends = [
        first_loss(
            lambda x, s=s: abscissa(case, channel(case, j, np.exp(1j * s * np.radians(x)))),
            np.linspace(0, 180, 91),
        )
        for s in (-1, 1)
    ]
    assert case.answer["margins"]["phase_deg"][j] == pytest.approx(min(ends), rel=1e-6)


def loop_gain(case, w):
    """Loop gain (k, m, m) at frequencies (k,)."""
    A, B, law = closed(case, delay=None)
    s = 1j * np.atleast_1d(w)[:, None, None]
    return -law @ np.linalg.solve(s * np.eye(len(A)) - A, np.broadcast_to(B, (len(s), *B.shape)))


@pytest.mark.parametrize("j", [0, 1, 2])
def test_delay_margins(case, j):
    """The least T with 1 + l(jw) e^-jwT = 0: phases are taken from the whole loop's matrix."""
    if j >= case.m:
        return
    poles = np.abs(np.linalg.eigvals(closed(case)))

    def own(w):
        """1 + l = det(I + L) / det(I + L without channel j): l is the channel's own gain."""
        whole = np.eye(case.m) + loop_gain(case, w)
        rest = [k for k in range(case.m) if k != j]
        return np.linalg.det(whole) / np.linalg.det(whole[:, rest][:, :, rest]) - 1

    w = np.geomspace(poles.min() / 30, poles.max() * 30, 3000)
    size = np.abs(own(w)) - 1
    at = np.array([
        brentq(lambda x: abs(own(x)[0]) - 1, w[k], w[k + 1], xtol=1e-13)
        for k in np.flatnonzero(size[:-1] * size[1:] < 0)
    ])  # fmt: skip
    delays = np.mod(np.angle(own(at)) + np.pi, 2 * np.pi) / at
    assert case.answer["margins"]["delay_seconds"][j] == pytest.approx(min(delays), rel=1e-6)


def test_the_disk_margin(case):
    """The structured singular value by its scalings; exact for up to three complex channels."""

    def mu(w):
        (L,) = loop_gain(case, w)
        Z = np.linalg.inv(np.eye(case.m) + L) - np.eye(case.m) / 2

        def norm(x):
            d = np.exp(np.concatenate([[0.0], x]))
            return np.linalg.norm(d[:, None] * Z / d, 2)

        x = np.zeros(case.m - 1)
        for _ in range(4 if case.m > 2 else 1):  # by coordinates: convex in the logarithms
            for k in range(len(x)):
                line = lambda v, k=k: norm(np.concatenate([x[:k], [v], x[k + 1 :]]))  # noqa: E731
                x[k] = minimize_scalar(line, bracket=(x[k] - 0.5, x[k] + 0.5)).x
        return norm(x)

    at, disk = case.answer["margins"]["disk_frequency"], case.answer["margins"]["disk"]
    assert disk == pytest.approx(1 / mu(at), rel=2e-4)
    poles = np.abs(np.linalg.eigvals(closed(case)))
    others = np.concatenate([np.geomspace(poles.min() / 10, poles.max() * 10, 12), poles])
    assert max(mu(w) for w in others) <= 1 / disk * (1 + 2e-4)


def test_the_smallest_sampling_rate(case):
    rate = case.answer["margins"]["min_sampling_rate"]
    A, B, law = closed(case, delay=None)
    n = len(case.A)

    def multiplier(T):
        held = expm(np.block([[case.A, case.B], [np.zeros((case.m, n + case.m))]]) * T)
        step = np.eye(len(A))
        step[:n, :n] = held[:n, :n]
        step[n:, :n] = T * A[n:, :n]  # integrals are summed sample by sample
        step[:n] += held[:n, n:] @ law
        return np.abs(np.linalg.eigvals(step)).max()

    assert multiplier(1 / (1.001 * rate)) < 1
    assert multiplier(1 / (0.999 * rate)) > 1
    assert B.shape == (len(A), case.m)
