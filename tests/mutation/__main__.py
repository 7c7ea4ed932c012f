"""Mutation score: how many small slips in a source file its tests notice; see README.md.

    python tests/mutation [FILE ...] [--sample N] [--seed S]

Every slip runs in a process of its own, forked from one that has the libraries loaded, on a copy of
the project; the changed file exists in that process's memory only. A slip whose tests do not end in
time is not counted as caught.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from report import Outcome, summary
from run import Runner, project_copy
from table import changed_files, equivalents, witnesses

ROOT = Path(__file__).parents[2]


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the copy is removed then, too
    asked = _arguments()
    files = asked.files or changed_files(ROOT, asked.base)
    known = witnesses()
    unknown = [file for file in asked.files if file not in known]
    if unknown:
        print(f"{unknown[0]}: expected a file of tests/mutation/witnesses.toml", file=sys.stderr)
        return 2
    files = [file for file in files if file in known]
    if not files:
        print(f"nothing to do: no file of witnesses.toml differs from {asked.base}")
        return 0
    outcomes = []
    with project_copy(ROOT) as copy:
        runner = Runner(root=copy, factor=asked.timeout_factor)
        for file in files:
            outcome = judge(runner, file, known[file], equivalents(file), asked)
            print(summary([outcome]), flush=True)
            outcomes.append(outcome)
    if len(outcomes) > 1:
        print(summary(outcomes, listing=False))
    return 0


def judge(
    runner: Runner, file: str, tests: list[str], known: dict[str, str], asked: argparse.Namespace
) -> Outcome:
    """Try the slips of a file, or a sample of them."""
    slips = runner.slips(file)
    labels = {slip.label for slip in slips}
    for label in sorted(set(known) - labels):
        print(f"witnesses.toml: {file}: no such slip any more: {label}")
    known = {label: reason for label, reason in known.items() if label in labels}
    outcome = Outcome(file=file, total=len(slips), known=known)
    chosen = outcome.sample(slips, asked.sample, asked.seed, asked.only)
    limit = runner.baseline(tests)
    for k, slip in enumerate(chosen, start=1):
        result = runner.attempt(file, slip, tests, limit)
        outcome.add(slip, result)
        if asked.verbose:
            print(f"{k}/{len(chosen)} {result} {file}:{slip.line} {slip.label}", flush=True)
    return outcome


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tests/mutation", description=__doc__)
    parser.add_argument("files", nargs="*", help="sources; by default those that differ from BASE")
    parser.add_argument("--base", default="main", help="commit to compare with (%(default)s)")
    parser.add_argument("--sample", type=int, help="try N slips of every file, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of that draw (%(default)s)")
    parser.add_argument("--only", default="", help="slips whose label contains this")
    parser.add_argument("--timeout-factor", type=float, default=4.0, help="of the tests' own time")
    parser.add_argument("-v", "--verbose", action="store_true", help="every slip as it is tried")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
