"""The same arms in Pinocchio, MuJoCo and Exudyn: time of a forced run and of a forward dynamics.

The run is that of [MS] section 7.1: 10 s of the planar Canadarm under given torques.  Each code
is given the cheapest discretisation, integrator and step of those tried with which its tip stays
within 1e-4 m, at all times, of its own converged solution in space and time.  All figures are
processor times of one run of this script; building, compiling and reading results out are left out.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import scipy.linalg

sys.exudynFast = True  # Exudyn's faster build, without range checks
import exudyn  # noqa: E402
from libraries import exudyn_arm, mujoco_arm  # noqa: E402
from libraries.canadarm import TIME, canadarm, torques  # noqa: E402
from libraries.evaluation import time_flexctl, time_mujoco, time_pinocchio  # noqa: E402
from libraries.pinocchio_arm import SegmentedArm, pinocchio_arm  # noqa: E402

from flexctl.control import design_controller  # noqa: E402
from flexctl.errors import FlexctlError  # noqa: E402
from flexctl.loop import close_loop  # noqa: E402
from flexctl.model import Arm, BasisChoice, load_design, load_model  # noqa: E402
from flexctl.plant import assemble_plant  # noqa: E402
from flexctl.simulation import Tolerance, simulate  # noqa: E402

Array = np.ndarray
State = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, v, a
WANTED = 1e-4  # m
SAMPLES = 100
TWO_MODES = BasisChoice(kind="modes", order=2)
REDUCED = BasisChoice(kind="elements", order=4, drop_above=150.0)  # Craig and Bampton
COARSE, FINE = (6, 7, 2), (12, 14, 4)  # segments of about 1 m and 0.5 m in each link


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One way of doing the run: `run` returns the tip (samples, 2) and its time [s]."""

    code: str
    words: str
    run: Callable[[], tuple[Array, float]]
    error: float = np.inf
    seconds: float = np.inf


def timed(call: Callable[[], Array]) -> tuple[Array, float]:
    """Return a result and the processor time [s] that it took."""
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def cheapest(trials: Iterator[Trial], exact: Array) -> Trial | None:
    """Return the fastest trial with an error below `WANTED`; each such is the best of three."""
    best = None
    for trial in trials:
        try:
            runs = [trial.run()]
            error = np.linalg.norm(runs[0][0] - exact, axis=1).max()
            if error < WANTED:
                runs += [trial.run() for _ in range(2)]  # of every code alike
        except (FlexctlError, exudyn.SolverError) as error:
            print(f"  tried {trial.words:58s} failed: {error}")
            continue
        done = replace(trial, error=float(error), seconds=min(seconds for _, seconds in runs))
        print(f"  tried {done.words:58s} {done.error:8.1e} m {done.seconds:9.4f} s", flush=True)
        if error < WANTED and (best is None or done.seconds < best.seconds):
            best = done
    return best


# --- flexctl ------------------------------------------------------------------------------------


def flexctl_run(arm: Arm, basis: BasisChoice, integrator: str, tolerance: float) -> Callable:
    """Prepare `simulate`, compiled by a first run."""
    controller = design_controller(arm, load_design("mohan-saha-forced"))
    loop = close_loop(controller, arm, basis)
    times = np.linspace(0, TIME, SAMPLES + 1)

    def once() -> Array:
        run = simulate(loop, times=times, integrator=integrator, tolerance=Tolerance.of(tolerance))
        return run.tip[:2].T

    once()
    return lambda: timed(once)


def with_foreshortening(arm: Arm, on: bool) -> Arm:
    """Return the arm with foreshortening of all links on or off."""
    links = [link.model_copy(update={"foreshortening": on}) for link in arm.links]
    return arm.model_copy(update={"links": tuple(links)})


def flexctl_trials(arm: Arm, bases: Sequence[BasisChoice]) -> Iterator[Trial]:
    """All bases with the integrators that are offered."""
    for basis in bases:
        named = f"{basis.order} {basis.kind}" + (" reduced" if basis.drop_above else "")
        for integrator, tolerances in (("explicit", (1e-4,)), ("esdirk", (3e-5, 1e-5, 3e-6))):
            for tolerance in tolerances:
                run = flexctl_run(arm, basis, integrator, tolerance)
                words = f"{named} per link, {integrator}, tolerance {tolerance:.0e}"
                yield Trial(code="flexctl", words=words, run=run)


def flexctl_best(foreshortening: bool, order: int | None = None) -> Trial | None:
    """Return the cheapest run; of `order` modes if given, else converged in space too."""
    arm = with_foreshortening(load_model("mohan-saha-canadarm"), foreshortening)
    if order:
        bases = [finest := BasisChoice(kind="modes", order=order)]
    else:
        finest = BasisChoice(kind="elements", order=4)
        bases = [
            BasisChoice(kind="elements", order=3),
            REDUCED,
        ]
    tip, _ = flexctl_run(arm, finest, "esdirk", 1e-8)()
    return cheapest(flexctl_trials(arm, bases), tip)


# --- rigid segments -----------------------------------------------------------------------------


def fastest_frequency(chain: SegmentedArm) -> float:
    """Highest natural frequency [rad/s] of a chain at rest."""
    q = np.zeros(chain.model.nv)
    upper = np.triu(pin.crba(chain.model, chain.model.createData(), q))
    M = upper + np.triu(upper, 1).T
    return float(np.sqrt(scipy.linalg.eigvalsh(np.diag(chain.springs), M)[-1]))


def steps_for(segments: Sequence[int], reach: float) -> int:
    """Return the number of steps, a multiple of the samples, with omega h < `reach`."""
    omega = fastest_frequency(pinocchio_arm(canadarm(), segments))
    return SAMPLES * int(np.ceil(TIME * omega / reach / SAMPLES))


def mujoco_run(segments: Sequence[int], integrator: str, steps: int) -> Callable:
    """Prepare a rollout: MuJoCo's loop in C.

    Torques are held over a step: those of its middle, or of its start for the semi-implicit Euler
    method, which then is the leapfrog method with velocities half a step ahead.
    """
    model = mujoco_arm.mujoco_arm(canadarm(), segments, TIME / steps, integrator)
    at = np.arange(steps) + (0.5 if integrator == "RK4" else 0.0)
    table = torques(at * TIME / steps)
    states = mujoco_arm.rolled(model)
    return lambda: mujoco_arm.finish(model, *timed(lambda: states(table)), steps // SAMPLES)


def pinocchio_run(segments: Sequence[int], integrator: str, steps: int) -> Callable:
    """Prepare a loop in Python; only the time inside Pinocchio's algorithm is counted."""
    chain = pinocchio_arm(canadarm(), segments)
    data, n, h = chain.model.createData(), chain.model.nv, TIME / steps
    table = torques(np.arange(2 * steps + 1) * h / 2)

    def once() -> tuple[Array, float]:
        q, v, tips, spent = np.zeros(n), np.zeros(n), [], 0.0
        force = np.zeros(n)

        def f(q: Array, v: Array, tau: Array) -> Array:
            nonlocal spent
            np.multiply(chain.springs, -q, out=force)
            force[chain.joints] += tau
            start = time.perf_counter()
            a = pin.aba(chain.model, data, q, v, force)
            spent += time.perf_counter() - start
            return a

        a = np.zeros(n)
        for k in range(steps + 1):
            if k % (steps // SAMPLES) == 0:
                tips.append(chain.tip_position(data, q)[:2])
            if k < steps:
                q, v, a = METHODS[integrator](f, (q, v, a), h, table[2 * k : 2 * k + 3])
        return np.array(tips), spent

    return once


def _rk4(f: Callable, state: State, h: float, tau: Array) -> State:
    q, v, _ = state
    a = f(q, v, tau[0])
    b = f(q + h / 2 * v, v + h / 2 * a, tau[1])
    c = f(q + h / 2 * v + h * h / 4 * a, v + h / 2 * b, tau[1])
    d = f(q + h * v + h * h / 2 * b, v + h * c, tau[2])
    return q + h * v + h * h / 6 * (a + b + c), v + h / 6 * (a + 2 * b + 2 * c + d), a


def _leapfrog(f: Callable, state: State, h: float, tau: Array) -> State:
    """Positions at the steps, velocities half a step before; Coriolis forces from a forecast."""
    q, v, a = state
    a = f(q, v + h / 2 * a, tau[0])
    v = v + h * a
    return q + h * v, v, a


METHODS = {"RK4": _rk4, "leapfrog": _leapfrog}
REACH = {
    "RK4": (2.6,),
    "leapfrog": (1.9, 1.6, 1.2),
    "Euler": (1.9, 0.5),
    "implicitfast": (1.9, 0.5),
}


def segment_trials(code: str, run: Callable, integrators: Sequence[str]) -> Iterator[Trial]:
    """Segment lengths from 1 m down to 0.5 m, steps from the limit of stability downwards."""
    for segments in ((10, 12, 3), (11, 13, 4), FINE):
        for integrator in integrators:
            for reach in REACH[integrator]:
                steps = steps_for(segments, reach)
                words = f"{'+'.join(map(str, segments))} segments, {integrator}, {steps} steps"
                yield Trial(code=code, words=words, run=run(segments, integrator, steps))


def segment_best(code: str, run: Callable, integrators: Sequence[str]) -> Trial | None:
    """Find the cheapest run of a chain; its errors fall with the square of the segments' length."""
    coarse, fine = (run(s, "RK4", steps_for(s, 2.0))()[0] for s in (COARSE, FINE))
    return cheapest(segment_trials(code, run, integrators), (4 * fine - coarse) / 3)


# --- Exudyn -------------------------------------------------------------------------------------


def exudyn_run(kind: str, order: int, steps: int) -> Callable:
    """Prepare a run; an assembled system is used once."""
    table = torques(np.linspace(0, TIME, steps + 1))

    def once() -> tuple[Array, float]:
        arm = exudyn_arm.exudyn_arm(canadarm(), order, kind)
        (_, _, tip), seconds = timed(lambda: arm.run(table, TIME))
        return tip, seconds

    return once


def exudyn_best(order: int | None = None) -> Trial | None:
    """Find the cheapest run; of `order` modes if given, else converged in space too."""
    kind, finest = ("modes", order) if order else ("polynomials", 5)
    coarse, fine = (exudyn_run(kind, finest, steps)()[0] for steps in (2000, 4000))

    def trials() -> Iterator[Trial]:
        for used in [order] if order else (3, 4):
            for steps in (1000, 1500, 2000, 3000, 4000):
                words = f"{used} {kind} per link, generalised-alpha, {steps} steps"
                yield Trial(code="Exudyn", words=words, run=exudyn_run(kind, used, steps))

    return cheapest(trials(), (4 * fine - coarse) / 3)


# --- tables -------------------------------------------------------------------------------------


def verdict(ours: Trial | None, other: Trial | None) -> str:
    """Say how much faster we are, plainly."""
    if ours is None or other is None:
        return "no answer: not within 1e-4 m"
    ratio = other.seconds / ours.seconds
    return f"flexctl {ratio:.1f} times faster" + ("" if ratio >= 10 else "  <- NOT TEN TIMES")


def compare_runs(title: str, ours: Trial | None, others: Sequence[Trial | None]) -> None:
    """Print the best of each code."""
    print(f"\n{title}")
    for trial in (ours, *others):
        if trial is not None:
            words = "" if trial is ours else verdict(ours, trial)
            print(f"  {trial.code:10s} {trial.words:56s} {trial.error:8.1e} m", end="")
            print(f" {1e3 * trial.seconds:9.1f} ms  {words}")
    print(flush=True)


def chain_of(links: int, planes: str) -> Arm:
    """Return equal flexible links on parallel axes, or turned by 1 rad each and bending twice."""
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 2.0, "foreshortening": False}
    link |= {"EI": dict.fromkeys(planes, 1e3)}
    link |= {"dh": {"alpha": 1.0}} if len(planes) > 1 else {}
    table = {"name": "chain", "summary": "equal links", "source": "own", "gravity": [0, 0, 0]}
    return Arm.model_validate(table | {"link": [link] * links})


def compare_evaluations(
    title: str, arm: Arm, segments: Sequence[int], basis: BasisChoice = TWO_MODES
) -> None:
    """Print one row of times per forward dynamics [us]; twisted arms have no MuJoCo model here."""
    ours = time_flexctl(assemble_plant(arm, basis))
    others = {"Pinocchio": time_pinocchio(pinocchio_arm(arm, segments))}
    if all(link.dh.alpha == 0 for link in arm.links):
        others["MuJoCo"] = time_mujoco(mujoco_arm.mujoco_arm(arm, segments, 1e-4, "Euler"))
    print(f"  {title:22s} flexctl {1e6 * ours:8.3f} us", end="")
    for code, seconds in others.items():
        ratio = seconds / ours
        plain = "" if ratio >= 10 else " NOT TEN TIMES"
        print(f" | {code} {1e6 * seconds:8.2f} us, {ratio:6.1f} x{plain}", end="")
    print(flush=True)


def main() -> None:
    """Compare runs at equal accuracy, then single evaluations."""
    pinocchio = segment_best("Pinocchio", pinocchio_run, ("RK4", "leapfrog"))
    mujoco = segment_best("MuJoCo", mujoco_run, ("RK4", "Euler", "implicitfast"))
    compare_runs(
        "10 s run, tip within 1e-4 m of the converged solution in space and time; geometrically "
        "exact chains,\nflexctl with foreshortening; of Pinocchio only the time inside its `aba`:",
        flexctl_best(foreshortening=True),
        [pinocchio, mujoco],
    )
    compare_runs(
        "the same without foreshortening, as Exudyn's floating frame:",
        flexctl_best(foreshortening=False),
        [exudyn_best()],
    )
    compare_runs(
        "the model of [MS], two modes per link, 1e-4 m of its own solution in time:",
        flexctl_best(foreshortening=False, order=2),
        [exudyn_best(2)],
    )
    print("One forward dynamics at equal accuracy, 1e-4 m; ours in a C loop, theirs from Python:")
    exact = canadarm(foreshortening=True)
    compare_evaluations("Canadarm, exact", exact, (11, 13, 4), REDUCED)
    compare_evaluations("Canadarm, no shortening", canadarm(), (11, 13, 4), REDUCED)
    print("NOT at equal accuracy: two modes per link against 8 segments per link")
    for links in (1, 2, 4, 8, 16):
        compare_evaluations(f"planar, {links} links", chain_of(links, "y"), [8] * links)
    for links in (1, 3, 6):
        compare_evaluations(f"spatial, {links} links", chain_of(links, "yz"), [8] * links)


if __name__ == "__main__":
    main()
