"""The two engines against each other over the number of links: operations and compiled time.

Chains of the planar links of [MS] with two modes each, without foreshortening. Prints operations
(multiplications and additions) and times of one evaluation in a loop of C, Lagrange's to 12 links
only, and the exponents that fit the upper half of each range; then what linear models cost. With
an argument it also saves a figure: ``python benchmarks/engines.py engines.svg``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import casadi as ca
import numpy as np
from c_loop import seconds_per_call

from flexctl.model import Arm, BasisChoice, load_model
from flexctl.plant import assemble_plant, count_operations

LINKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MOST_OF_LAGRANGE = 12
FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "mass_matrix")
TWO_MODES = BasisChoice(kind="modes", order=2)
MOST_TIMED = 40_000  # operations; the compiler takes minutes for functions much longer

Table = Mapping[tuple[str, str], Mapping[int, float]]


def chain(n_links: int, name: str = "mohan-saha-canadarm") -> Arm:
    """Links of a catalogue arm, over and over."""
    table = load_model(name).model_dump(by_alias=True, exclude_unset=True)
    links = table["link"]
    table["link"] = [links[i % 3] | {"name": f"link{i + 1}"} for i in range(n_links)]
    return Arm.model_validate(table)


def measure() -> tuple[Table, Table]:
    """Operations and times [s] by engine, function and number of links."""
    operations, times = {}, {}
    for engine in ("recursion", "lagrange"):
        for n in LINKS:
            if engine == "lagrange" and n > MOST_OF_LAGRANGE:
                continue
            functions = assemble_plant(chain(n), TWO_MODES, engine=engine).casadi_functions
            for name in FUNCTIONS:
                count = operation_count(functions[name])
                operations.setdefault((engine, name), {})[n] = count
                if count <= MOST_TIMED:
                    times.setdefault((engine, name), {})[n] = seconds(functions[name])
    return operations, times


def operation_count(function: ca.Function) -> int:
    """Multiplications and additions of a function."""
    found = count_operations(function)
    return found.mul + found.add


def seconds(function: ca.Function) -> float:
    """Time [s] of one evaluation, compiled by the same level whatever the length."""
    count = max(200, 4_000_000 // (operation_count(function) + 100))
    return seconds_per_call(function, count=count, level="-O1")


def exponent(values: Mapping[int, float]) -> float:
    """Exponent of the power of n that fits the upper half of the range."""
    n = np.array(sorted(values))
    upper = n[n >= np.sqrt(n[-1])]
    return float(np.polyfit(np.log(upper), np.log([values[int(k)] for k in upper]), 1)[0])


def show(title: str, table: Table, scale: float, form: str) -> None:
    """Print one row per engine and function."""
    print(f"\n{title}")
    print(f"{'links':28s}" + "".join(f"{n:>9d}" for n in LINKS) + "   exponent")
    for (engine, name), values in table.items():
        cells = "".join(f"{scale * values[n]:9{form}}" if n in values else " " * 9 for n in LINKS)
        print(f"{engine:10s}{name:18s}{cells}   n^{exponent(values):.2f}")


def show_ratios(times: Table) -> None:
    """Print how many times longer Lagrange's functions take, from the times above."""
    print("\nLagrange's time over the recursion's")
    for name in FUNCTIONS:
        slow, fast = times["lagrange", name], times["recursion", name]
        slow = {n: value for n, value in slow.items() if n in fast}
        print(f"{name:28s}" + "".join(f"{slow[n] / fast[n]:9.2f}" for n in slow))


def show_linearisation() -> None:
    """Print what exact derivatives cost beside one forward dynamics."""
    print("\nLinear models beside one forward dynamics (three links, two modes)")
    for name in ("mohan-saha-canadarm", "mohan-saha-canadarm-spatial"):
        functions = assemble_plant(load_model(name), TWO_MODES).casadi_functions
        forward = functions["forward_dynamics"]
        count, time = operation_count(forward), seconds(forward)
        print(f"{name}: forward dynamics {count} operations, {1e9 * time:.0f} ns")
        for derivative in ("derivatives_at_rest", "derivatives"):
            more = operation_count(functions[derivative])
            known = more <= MOST_TIMED
            longer = f"{seconds(functions[derivative]) / time:5.1f} x time" if known else ""
            print(f"    {derivative:20s} {more / count:5.1f} x operations {longer}", flush=True)


def plot(operations: Table, times: Table, path: str) -> None:
    """Draw both tables, doubly logarithmic."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    styles: Sequence[str] = ("o-", "s-", "^-")
    for axis, table, scale, title in (
        (axes[0], operations, 1.0, "multiplications and additions"),
        (axes[1], times, 1e6, "time of one evaluation [us]"),
    ):
        for style, name in zip(styles, FUNCTIONS, strict=True):
            for engine, colour in (("recursion", "C0"), ("lagrange", "C1")):
                values = table[engine, name]
                label = f"{engine}, {name.replace('_', ' ')}: n^{exponent(values):.1f}"
                points = [scale * value for value in values.values()]
                axis.loglog(list(values), points, style, color=colour, label=label, markersize=4)
        axis.set(title=title, xlabel="links, two modes each")
        axis.set_xticks([1, 2, 4, 8, 16, 32, 64], [1, 2, 4, 8, 16, 32, 64])
        axis.grid(visible=True, which="both", alpha=0.3)
        axis.legend(fontsize=8)
    figure.savefig(path)


def main() -> None:
    """Print all tables of one run."""
    operations, times = measure()
    show("Operations of one evaluation", operations, 1.0, ".0f")
    show("Time of one evaluation [us]", times, 1e6, ".2f")
    show_ratios(times)
    show_linearisation()
    if len(sys.argv) > 1:
        plot(operations, times, sys.argv[1])


if __name__ == "__main__":
    main()
