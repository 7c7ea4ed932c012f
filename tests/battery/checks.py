"""What must hold of every arm with every design, each check beside a second way to the answer."""

import contextlib
import io
import itertools
import json
import re
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from flexctl.control import design_controller, design_on
from flexctl.errors import FlexctlError, InputError, RunError
from flexctl.loop.closed_loop import close_around
from flexctl.loop.equilibrium import find_loop_equilibrium
from flexctl.loop.linear import linearise_loop
from flexctl.loop.setup import default_truth
from flexctl.model.design import Reference
from flexctl.model.lookup import load_design, load_model
from flexctl.plant.plant import assemble_plant
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.verdict.evaluation import evaluate
from flexctl.view import cli
from tests.arms import wrong_plant
from tests.battery.random_case import Case
from tests.battery.witness import Equilibrium, Held, abscissa, reach

AGREE = 1e-6  # of the package's linear models with differences
MARGINAL = 1e-6  # |Re| over |lambda| below which no run shows a decay
ON_AXIS = 1e-9  # below which it is none at all
AMPLITUDES = (1e-4, 1e-5, 1e-6)  # of the reach, by which the tip is moved
SEEN = 3e-3  # of the logarithm of an amplitude: what squares of the deviation may do to it
AT_END = 1e-3  # relative distance from an exact end at which the loop must have changed sides
INSIDE, OUTSIDE = 0.99, 1.01  # of a bound, and of a worst case
FINEST = 2**17  # parts of a step to the next share of an error: equilibria turn back in folds
CORNERS = 16
FAR = 3.0  # relative error of the stiffness at which a loop without an end is looked at
LEAST_LEFT = -0.999  # and the same downwards
JUMP = 0.1  # of a coordinate in a step: perhaps to another equilibrium
ONWARD = 2.0  # times the rate of the last step: an equilibrium that moves on as before
NOTHING_LEFT = -1 + 1e-7  # relative error of a stiffness or a payload: no less is one
QUICK_TURNS, TURNS = 300.0, 5000.0  # rad that the fastest mode may turn in a run
QUICK_SAMPLES, SAMPLES = 150, 2000
FINE = Tolerance.of(1e-11)
SECONDS = 120  # that one check may take
NO_NUMBER = re.compile(r"\b(nan|inf)\b|(?<![\w.])-0(\.0*)?(?![\w.])")
COMMANDS = (
    ("simulate", "--duration", "0.2"),
    ("margin", "--path", "0", "--no-structured"),
    ("track", "--motion", "rest", "--points", "4"),
    ("compare", "--no-baseline"),
)


@dataclass
class Report:
    """What was found to be wrong about a case, and how often what was checked or left out."""

    seed: int
    findings: list[str] = field(default_factory=list)
    counts: Counter = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    def expect(self, holds: bool, what: str) -> None:
        """Note a finding where something does not hold."""
        if not holds:
            self.findings.append(what)


class TooLongError(Exception):
    """A check took longer than `SECONDS`."""


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TooLongError after so many seconds of the processor."""

    def stop(_signal: int, _frame: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of this process: others may be at work too
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Subject:
    """An arm and a design as loaded from their files, and the loop that holds the design's end."""

    def __init__(self, paths: tuple[Path, Path], *, seed: int = 0, quick: bool = False) -> None:
        self.paths, self.quick = paths, quick
        self.arm, self.design = load_model(paths[0]), load_design(paths[1])
        self.report = Report(seed)

    @cached_property
    def held_design(self):
        """The design with its reference standing at its end, the second loop at work at once."""
        return hold(self.design)

    @cached_property
    def truth(self):
        """Truth plant that verdicts are given on."""
        return assemble_plant(self.arm, self.truth_basis, interpreted=True)

    @property
    def truth_basis(self):
        """Its discretisation."""
        return default_truth(self.arm, self.design.basis)

    @cached_property
    def loop(self):
        """The loop that holds the final pose."""
        controller = design_controller(self.arm, self.held_design, interpreted=True)
        return close_around(controller, self.truth)

    @cached_property
    def held(self) -> Held:
        """The same as a witness sees it."""
        return Held(self.loop)

    @cached_property
    def rest(self) -> Equilibrium | None:
        """Where the witness finds that it rests."""
        return self.held.rest()


def hold(design):
    """Return a design whose reference stands where it ended, its second loop at work at once."""
    final = tuple(design.reference.to)
    held = Reference.model_validate({"kind": "setpoint", "from": final, "to": final})
    update = {"reference": held, "loop": design.loop.model_copy(update={"duration": 0.02})}
    if design.second_loop:
        update["second_loop"] = design.second_loop.model_copy(update={"switch": None})
    return design.model_copy(update=update)


# Rest and linear model


def check_rest(s: Subject) -> None:
    """Newton's method on plain numbers finds the equilibrium that the package names."""
    theirs = package_rest(s)
    s.report.counts["rests"] += theirs is not None
    if theirs is not None and overloaded(s, theirs.tau):
        return  # that is for the verdict to say
    if theirs is s.rest is None:
        return
    if theirs is None and s.rest is not None and leaves(s):
        s.report.counts["unstable rests that the arm leaves"] += 1
        return
    if theirs is None or s.rest is None:
        s.report.expect(False, one_only(theirs, s))
        return
    away = np.abs(theirs.q - s.rest.q).max()
    if away > 1e-6:
        left = np.abs(s.held.unbalanced(np.concatenate([theirs.q, theirs.z]))).max()
        s.report.counts["rests elsewhere than the witness"] += 1
        s.report.expect(left < 1e-6 * force(s), f"rest: {left:.3g} unbalanced where it rests")
        return
    s.report.expect(away < 1e-8, f"rest: {away:.3g} from the witness")
    off = np.abs(theirs.tau - s.rest.tau).max()
    s.report.expect(off < 1e-6 * force(s), f"rest: torques {off:.3g} from the witness")


def overloaded(s: Subject, tau: np.ndarray) -> bool:
    """Whether torques are more than actuators can give; a law with an observer limits itself."""
    most = s.loop.torque_limit * (1 - 1e-9 if s.loop.controller.observer else 1)
    return bool((np.abs(tau) > most).any())


def force(s: Subject) -> float:
    """Size of the forces that act [N or N m]."""
    return 1.0 + float(np.abs(s.rest.tau).max()) if s.rest else 1.0


def package_rest(s: Subject):
    """Where the package says that the loop rests; None where it says that it does not."""
    try:
        return linearise_loop(s.loop, s.held.joints, s.held.share).rest
    except FlexctlError as error:
        s.report.expect("\n" not in str(error), f"rest: more than a line: {error}")
        return None


def leaves(s: Subject) -> bool:
    """Whether the arm moves away from the witness's equilibrium, to where the package finds it.

    One real eigenvalue above zero: the equilibrium is no minimum of the potential, to which the
    package does not hold; there must be another one, which balances and does not grow so.
    """
    rates = s.held.poles(s.rest)
    if not (rates[np.abs(rates.imag) < 1e-9].real > 0).any():
        return False
    try:
        there = find_loop_equilibrium(s.loop, s.held.joints, s.held.share)
    except FlexctlError:
        return False
    left = np.abs(s.held.unbalanced(np.concatenate([there.q, there.z]))).max()
    return there.falls and bool(left < 1e-6 * force(s))


def one_only(theirs, s: Subject) -> str:
    if theirs is not None:
        return f"rest: the witness finds none, the package q = {theirs.q.round(4).tolist()}"
    poles = s.held.poles(s.rest)
    return (
        f"rest: none, but the witness q = {s.rest.q.round(4).tolist()}, {abscissa(poles):.3g} 1/s"
    )


def check_linear(s: Subject) -> None:
    """The package's linear loop at its rest is what differences of the nonlinear loop give."""
    found = package_rest(s)
    if found is None or (s.loop.controller.observer and overloaded(s, found.tau)):
        return  # at its limit the law has no derivative
    linear = linearise_loop(s.loop, s.held.joints, s.held.share)
    at = Equilibrium(q=linear.rest.q, z=linear.rest.z, tau=linear.rest.tau)
    A, B, K, L, E, F = s.held.matrices(at)
    pairs = {
        "A": (linear.plant.A_state, A),
        "B": (linear.plant.B_state, B),
        "K": (linear.feedback, K),
        "L": (linear.integral_gain, L),
        "E": (linear.E, E),
        "F": (linear.F, F),
    }
    for name, (ours, differences) in pairs.items():
        size = np.maximum(np.abs(differences).max(axis=1, initial=0.0), 1.0)
        off = (np.abs(ours - differences) / size[:, None]).max(initial=0.0)
        s.report.expect(off < AGREE, f"linear: {name} is {off:.3g} off differences")


# Verdict


def verdict_poles(s: Subject) -> tuple[np.ndarray, Equilibrium] | None:
    """Eigenvalues by the witness where the package says that the loop rests."""
    found = package_rest(s)
    if found is None:
        return None
    at = Equilibrium(q=found.q, z=found.z, tau=found.tau)
    return s.held.poles(at), at


def check_verdict(s: Subject) -> None:
    """Stability, abscissa and damping of an evaluation are those of the witness's eigenvalues."""
    witness = verdict_poles(s)
    try:
        found = evaluate(s.loop)
    except FlexctlError as error:
        s.report.expect("\n" not in str(error), f"verdict: more than a line: {error}")
        s.report.expect(witness is None, f"verdict: {error}")
        return
    s.report.counts["verdicts"] += 1
    for metric, why in found.not_computed.items():
        s.report.counts[f"not computed: {metric}"] += 1
        library = "\n" in why or why.startswith("the computation failed")
        s.report.expect(not library, f"verdict: {metric} is not computed: {why}")
    if witness is None:
        s.report.expect(bool(found.failed), "verdict: no rest, but not failed")
        return
    holds = not overloaded(s, witness[1].tau)
    s.report.expect(found.rest.holds is holds, f"verdict: rest.holds is {found.rest.holds}")
    if not holds:
        s.report.counts["cannot hold"] += 1
        s.report.expect(found.failed and "cannot hold" in found.failed, "verdict: fails to say it")
        return
    s.report.expect(found.stability is not None, f"verdict: no stability: {found.not_computed}")
    poles = witness[0]
    clear = np.abs(poles.real) > AGREE * np.abs(poles)
    stable, own = bool((poles.real[clear] < 0).all()), found.stability
    if clear.all() or not stable:
        s.report.expect(
            own.stable is stable, f"verdict: stable is {own.stable}, {abscissa(poles):.3g} 1/s"
        )
    else:
        s.report.counts["marginal"] += 1
    off = abs(own.spectral_abscissa - (abscissa(poles) if clear.all() else own.spectral_abscissa))
    s.report.expect(
        off < 1e-5 * np.abs(poles).max(),
        f"verdict: abscissa {own.spectral_abscissa:.6g}, {off:.3g} off",
    )


# Runs beside the rest


def check_runs(s: Subject) -> None:
    """Nonlinear runs along the slowest and the least damped eigenvector decay as said."""
    witness = verdict_poles(s)
    if witness is None:
        return
    at, matrix = witness[1], s.held.matrix(witness[1])
    if overloaded(s, at.tau):
        s.report.counts["runs: torque limit too low to rest"] += 1
        return
    values, W, V = eigenvectors(matrix)
    own = log_values(s, values)
    span = (QUICK_TURNS if s.quick else TURNS) / float(np.abs(s.held.in_time(values)).max())
    span = min(span, 2.0 / max(float(own.real.max()), 1e-9))
    for k in sorted({int(np.argmax(own.real)), int(np.argmin(damping(own)))}):
        run_along(s, at, Mode(own=complex(own[k]), left=W[:, k], right=V[:, k]), span)


def eigenvectors(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Eigenvalues, left and right eigenvectors in columns, W^H V = 1."""
    values, V = np.linalg.eig(A)
    return values, np.linalg.inv(V).conj().T, V


def log_values(s: Subject, values: np.ndarray) -> np.ndarray:
    """Eigenvalues [rad/s]; what is gone after a sample decays at once."""
    T = s.loop.controller.sample_time
    values = values.astype(complex)
    return values if T is None else np.log(np.where(np.abs(values) > 1e-6, values, 1e-6)) / T


def damping(values: np.ndarray) -> np.ndarray:
    """Damping ratios of what swings; 1 for what does not."""
    swings = np.abs(values.imag) > 1e-6 * np.abs(values)
    return np.where(swings, -values.real / np.maximum(np.abs(values), 1e-300), 1.0)


def run_along(s: Subject, at: Equilibrium, mode: "Mode", span: float) -> None:
    """Compare the decay of one mode's share in a run of at most `span` s with its eigenvalue."""
    own = mode.own
    if abs(own.real) <= MARGINAL * max(abs(own), 1e-3):
        s.report.counts["runs: marginal"] += 1
        return
    T, period = min(0.5 / abs(own.real), span), s.loop.controller.sample_time
    if period:
        T = period * max(4, int(min(T / period, QUICK_SAMPLES if s.quick else SAMPLES)))
    if abs(own.real) * T < 3 * SEEN:
        s.report.counts["runs: too slow to be seen"] += 1
        return
    rate, why = np.nan, ""
    for amplitude in AMPLITUDES:  # squares of the deviation vanish with it, faults do not
        found = decay(s, at, mode, T, amplitude)
        if isinstance(found, str):
            why = found
            continue
        rate = found
        if abs(rate - own.real) <= max(0.02 * abs(own.real), SEEN / T):
            s.report.counts["runs"] += 1
            return
    if np.isnan(rate):
        s.report.counts[f"runs: {why}"] += 1
        return
    s.report.expect(False, f"run: {own:.5g} rad/s, but {rate:.5g} 1/s in a run of {T:.3g} s")


@dataclass(frozen=True, kw_only=True)
class Mode:
    """One eigenvalue [rad/s] with its left and right eigenvectors (N,)."""

    own: complex
    left: np.ndarray
    right: np.ndarray


def decay(s: Subject, at: Equilibrium, mode: Mode, T: float, amplitude: float) -> float | str:
    """Rate [1/s] at which the share of a mode changes in a run of T seconds, or why not."""
    n, period = s.held.n, s.loop.controller.sample_time
    N = 2 * n + s.held.n_z
    begun = small(s, at, mode.right[:N], amplitude)
    start = (at.q + begun[:n], begun[n : 2 * n], at.z + begun[2 * n :])
    times, acts = sampled_times(s, T) if period else (np.linspace(0, T, 61), np.zeros(0))
    every = np.union1d(times, acts)
    try:
        run = simulate(s.loop, times=every, duration=float(every[-1]), start=start, tolerance=FINE)
    except RunError as error:
        words = ("theory", "leaves", "beyond its own length")
        s.report.expect(any(word in str(error) for word in words), f"run: {error}")
        return "the model ends there"
    if run.saturated.any():
        return "saturated"
    there = np.searchsorted(every, times)
    states = np.vstack([run.q - at.q[:, None], run.v, run.z - at.z[:, None]])[:, there]
    if period:
        torques = (run.tau - at.tau[:, None])[:, np.searchsorted(every, acts)]
        states, times = on_their_way(s, states, torques), times[late(s) :]
    return float(np.polyfit(times, np.log(np.abs(mode.left.conj() @ states)), 1)[0])


def late(s: Subject) -> int:
    """Samples whose torques are on their way when the next one is taken."""
    period = s.loop.controller.sample_time or 1.0
    return int(np.ceil(s.loop.controller.delay / period - 1e-9))


def sampled_times(s: Subject, T: float) -> tuple[np.ndarray, np.ndarray]:
    """Instants just before the samples 1, 2, ..., and some at which those of 0, 1, ... act."""
    period = s.loop.controller.sample_time
    k = np.arange(1, round(T / period) + 1)
    return k * period - 1e-7 * period, (np.append(0, k) + 0.5) * period + s.loop.controller.delay


def on_their_way(s: Subject, states: np.ndarray, torques: np.ndarray) -> np.ndarray:
    """States (N, K) before the samples, from that number `late` on, above torques sampled before.

    `torques` (m, K + 1) are those of the samples 0, 1, ...; the newest comes first.
    """
    count, K = late(s), states.shape[1]
    waiting = [torques[:, count - j + 1 : K - j + 1] for j in range(1, count + 1)]
    return np.vstack([states[:, count:], *waiting])


def small(s: Subject, at: Equilibrium, x: np.ndarray, amplitude: float) -> np.ndarray:
    """Scale a complex deviation (N,) so that the tip moves by a share of the reach over a period.

    Nothing else moves by much more. Its phase is that at which what moves most is farthest out:
    where all pass through the rest a mode of 600 rad/s has its rates, and no amplitude is small.
    """
    n = s.held.n
    estimate = x[2 * n + s.loop.controller.n_integral :]
    tip = s.truth.tip_jacobian(at.q) @ x[:n]
    along = tip[np.abs(tip).argmax()] * np.linalg.norm(tip) / max(np.abs(tip).max(), 1e-300)
    moved = np.concatenate([[along], 0.1 * x[:n], 0.1 * estimate[: len(estimate) // 2]])
    most = moved[np.abs(moved).argmax()] or x[np.abs(x).argmax()]
    return np.real(x / most) * amplitude * reach(s.truth, at.q)


# Stiffness margins


def rebuilt(s: Subject, errors: np.ndarray) -> Held:
    """The loop of a controller made anew with these relative errors of its stiffness, by part."""
    plant = wrong_plant(s.arm, s.held_design.basis, errors)
    return Held(close_around(design_on(plant, s.held_design), s.truth))


def growth(held: Held, near: Equilibrium) -> float:
    """Abscissa [1/s] of a loop where it rests itself, next to `near`.

    Infinite where it rests nowhere, or where its actuators cannot hold it.
    """
    at = held.rest(np.concatenate([near.q, near.z]))
    if at is None or (np.abs(at.tau) > held.loop.torque_limit).any():
        return np.inf
    return abscissa(held.poles(at))


def margin_of(s: Subject, errors: dict | None = None):
    """Margin at the final pose; None where the package says in one line why there is none."""
    try:
        return stiffness_margin(s.arm, s.held_design, n_path=0, errors=errors)
    except FlexctlError as error:
        s.report.expect("\n" not in str(error), f"margin: more than a line: {error}")
        s.report.counts["margins: refused"] += 1
        return None


def check_margin(s: Subject) -> None:
    """At the ends of the exact interval the loop of a rebuilt controller changes sides.

    Where there is no end it is stable far away.
    """
    if not stable_by_witness(s):
        return
    margin = margin_of(s)
    if margin is None:
        return
    for end, far in ((margin.exact.lower, LEAST_LEFT), (margin.exact.upper, FAR)):
        if end is None:
            check_no_end(s, far)
        elif not end.alpha:
            s.report.counts["margins: an undamped mode tolerates no error"] += 1
        else:
            check_end(s, end.alpha)


def check_no_end(s: Subject, far: float) -> None:
    """Nothing is lost up to an error: the loop is stable there, in the long checks half way too."""
    s.report.counts["margins: no end"] += 1
    for error in (far,) if s.quick else (far / 2, far):
        grows = followed(s, lambda x: biased(s, x), np.array([error]), grows=False)
        s.report.expect(grows < 0, f"margin: no end, but {grows:.3g} 1/s at {error:.6g}")


def check_end(s: Subject, alpha: float) -> None:
    """Within an end the loop is stable, beyond it is not."""
    origin = 0.0 if alpha > -0.5 else -1.0
    near, far = (origin + (alpha - origin) * (1 + x) for x in (-AT_END, AT_END))
    inside, outside = (far, near) if origin else (near, far)
    grows = [
        followed(s, lambda x: biased(s, x), np.array([error]), grows=side)
        for error, side in ((inside, False), (outside, True))
    ]
    s.report.counts["exact ends"] += 1
    if grows[1] <= 0 and hangs(s, biased(s, np.array([outside]))):
        s.report.counts["exact ends where motors hold the arm no more"] += 1
        grows[1] = np.inf
    s.report.expect(
        grows[0] < 0 < grows[1],
        f"margin: at {alpha:.6g} {grows[0]:.3g} 1/s within, {grows[1]:.3g} beyond",
    )


def biased(s: Subject, error: np.ndarray) -> Held:
    """The loop of a controller with the same relative error (1,) of all its stiffness."""
    parts = len(s.loop.controller.plant.stiffness_parts)
    return rebuilt(s, np.full(parts, max(float(error[0]), NOTHING_LEFT)))


def stable_by_witness(s: Subject) -> bool:
    """Whether the loop is held where it rests, and clearly stable."""
    if s.rest is None or (np.abs(s.rest.tau) > s.loop.torque_limit).any():
        return False
    poles = s.held.poles(s.rest)
    return bool((poles.real < -AGREE * np.abs(poles)).all())


def check_links(s: Subject) -> None:
    """Errors of links and springs by themselves: stable within the bound, not beyond the worst."""
    margin = stable_by_witness(s) and margin_of(s, {"links": 1.0})
    if not margin or not margin.independent:
        return
    names = s.loop.controller.plant.stiffness_parts
    owners = list(dict.fromkeys(name.split(".")[0] for name in names))
    index = np.array([owners.index(name.split(".")[0]) for name in names])
    found = margin.independent[0].bounds
    least = LEAST_LEFT if found.followed else NOTHING_LEFT  # followed so far only

    def made(by_owner: np.ndarray) -> Held:
        return rebuilt(s, np.maximum(by_owner, least)[index])

    bounds(s, "links", found, len(owners), made)


def check_payload(s: Subject) -> None:
    """An error of the payload: the same of the arm as it is, its controller unchanged."""
    if not s.arm.payload.mass or s.loop.controller.sample_time:
        return
    margin = stable_by_witness(s) and margin_of(s, {"payload": 1.0})
    if margin and margin.independent:
        bounds(s, "payload", margin.independent[0].bounds, 1, lambda x: loaded(s, float(x[0])))


def loaded(s: Subject, error: float) -> Held:
    """The loop where the arm carries (1 + error) times its payload."""
    return Held(close_around(s.loop.controller, with_payload(s.truth, error)))


def with_payload(truth, error: float):
    """A truth plant in the same shapes with (1 + error) times its payload, mass and inertia."""
    load, times = truth.arm.payload, 1 + max(error, NOTHING_LEFT)
    inertia = tuple(times * J for J in load.inertia)
    changed = load.model_copy(update={"mass": times * load.mass, "inertia": inertia})
    return replace(truth, arm=truth.arm.model_copy(update={"payload": changed}))


def bounds(s: Subject, kind: str, found, count: int, made: Callable) -> None:
    """Check a guaranteed fraction at corners of the box and the worst case beyond it."""
    fraction = INSIDE * found.guaranteed_fraction
    corners = np.array(
        list(itertools.islice(itertools.product((-1.0, 1.0), repeat=count), CORNERS))
    )
    worst = max(followed(s, made, fraction * corner, grows=False) for corner in corners)
    s.report.counts[f"bounds of {kind}"] += 1
    if not found.proven:
        s.report.counts[f"bounds of {kind} not proven"] += 1
    s.report.expect(
        worst < 0, f"{kind}: {worst:.3g} 1/s within {100 * fraction:.4g} %, proven {found.proven}"
    )
    if found.worst_case is None:
        return
    worst_case = np.asarray(found.worst_case.delta)
    beyond = followed(s, made, outside(worst_case), grows=True)
    if beyond <= 0 and stands_on_axis(s, made(worst_case)):
        s.report.counts[f"worst cases of {kind} that touch the axis only"] += 1
        return
    if beyond <= 0 and hangs(s, made(outside(worst_case))):
        s.report.counts[f"worst cases of {kind} where motors hold the arm no more"] += 1
        return
    s.report.expect(beyond > 0, f"{kind}: {beyond:.3g} 1/s beyond the worst case {worst_case}")


def stands_on_axis(s: Subject, held: Held) -> bool:
    """Whether a mode neither decays nor grows: one that no joint feels any more where it turns."""
    at = held.rest(np.concatenate([s.rest.q, s.rest.z]))
    poles = held.poles(at) if at else np.array([-1.0])
    return bool((poles.real > -ON_AXIS * np.abs(poles)).any())


def hangs(s: Subject, held: Held) -> bool:
    """Whether torques at their limits feel nothing: the arm hangs, and what damps it is its own."""
    at = held.rest(np.concatenate([s.rest.q, s.rest.z]))
    return at is not None and bool((np.abs(at.tau) >= (1 - 1e-6) * s.loop.torque_limit).any())


def outside(delta: np.ndarray) -> np.ndarray:
    """Go beyond a worst case by a hundredth, of what is left where little is left."""
    return np.where(delta < -0.5, (1 + delta) / OUTSIDE - 1, OUTSIDE * delta)


def followed(s: Subject, made: Callable, error: np.ndarray, *, grows: bool) -> float:
    """Abscissa [1/s] with an error, where the loop rests; infinite where it does not.

    From the rest without error the one with a large error may not be found, or another one is:
    where the answer is not the one expected, the rest is followed to the error in small steps.
    """
    found = growth(made(error), s.rest)
    if (found > 0) is grows:
        return found
    near, reached = s.rest, 0.0
    for share in shares(float(np.abs(error).max())):
        near = reached_from(made, error, near, reached, share)
        if near is None:
            return np.inf
        reached = share
    return growth(made(error), near)


def reached_from(made: Callable, error: np.ndarray, near: Equilibrium, begin: float, end: float):
    """Follow a rest from one share of an error to the next, in halves where that is too far.

    Too far is further than `JUMP`, unless it went on so before: deflections grow without bound
    where the stiffness vanishes.
    """
    size, least, rate = end - begin, (end - begin) / FINEST, 0.0
    while begin < end and size > least:
        ahead = min(begin + size, end)
        found = made(ahead * error).rest(np.concatenate([near.q, near.z]))
        moved = np.inf if found is None else float(np.abs(found.q - near.q).max())
        if found is None or moved > max(JUMP, ONWARD * rate * (ahead - begin)):
            size /= 2
        else:
            rate = moved / (ahead - begin)
            near, begin, size = found, ahead, 1.5 * size
    return near if begin >= end else None


def shares(size: float) -> np.ndarray:
    """Shares of an error on the way to it, ending at 1: tenths, or a fifth more load each."""
    if size < 1:
        return np.linspace(0.1, 1, 10)
    steps = int(np.ceil(np.log1p(size) / np.log(1.2)))
    return (np.geomspace(1, 1 + size, steps + 1)[1:] - 1) / size


# The command line


def check_command_line(s: Subject) -> None:
    """Every command answers, or refuses in one line.

    Its JSON holds finite numbers or null; its text, of every second seed, no number that is none.
    """
    first, count = s.report.seed % len(COMMANDS), 1 if s.quick else 2
    chosen = [COMMANDS[(first + k) % len(COMMANDS)] for k in range(count)]
    form = ("--json",) if s.report.seed // len(COMMANDS) % 2 else ()
    call(s, "inspect", str(s.paths[0]), *form)
    if s.design.method == "composite" and not s.quick:
        chosen.append(("separation",))
    for command, *options in chosen:
        call(s, command, *map(str, s.paths), *options, *form)


def call(s: Subject, *words: str) -> None:
    """Run a command and check its status, its lines and what it answers."""
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("error")
        status = cli.run(list(words))
    lines, name = err.getvalue().strip().splitlines(), words[0]
    s.report.counts[f"{name}: status {status}"] += 1
    if status:
        s.report.expect(status in (2, 3), f"{name}: status {status}")
        s.report.expect(len(lines) == 1, f"{name}: {len(lines)} lines of refusal: {lines[:2]}")
        s.report.expect("internal error" not in err.getvalue(), f"{name}: {err.getvalue().strip()}")
    elif "--json" in words:
        try:
            json.loads(out.getvalue(), parse_constant=_refuse)
        except ValueError as error:
            s.report.expect(False, f"{name}: JSON: {error}")
    else:
        none = [line for line in out.getvalue().splitlines() if NO_NUMBER.search(line)]
        s.report.expect(bool(out.getvalue().strip()), f"{name}: says nothing")
        s.report.expect(not none, f"{name}: text: {none[:2]}")


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


QUICK_CHECKS = (check_rest, check_linear, check_verdict, check_runs, check_margin)
CHECKS = (*QUICK_CHECKS, check_links, check_payload)


def check_case(case: Case, folder: Path, *, quick: bool = False) -> Report:
    """Check all that must hold of a case; its files stay in `folder`."""
    s = Subject(case.write(folder), seed=case.seed, quick=quick)
    try:
        _ = s.loop
    except (InputError, FlexctlError) as error:
        s.report.counts["no such controller"] += 1
        s.report.expect("\n" not in str(error), f"design: more than a line: {error}")
        check_command_line(s)
        return s.report
    for check in (*(QUICK_CHECKS if quick else CHECKS), check_command_line):
        begun = time.process_time()
        try:
            with at_most(SECONDS):
                check(s)
        except TooLongError:
            s.report.expect(False, f"{check.__name__}: took more than {SECONDS} s")
        except Exception as error:  # noqa: BLE001 (what must not happen is what is looked for)
            where = traceback.extract_tb(error.__traceback__)[-1]
            at = f"{Path(where.filename).name}:{where.lineno}"
            s.report.expect(False, f"{check.__name__}: {type(error).__name__} at {at}: {error}")
        s.report.seconds[check.__name__] = time.process_time() - begun
    return s.report
