"""Run the battery of random arms: `make battery SEEDS=200 START=0`; resumes what was begun.

A seed is done once for the sources as they are: the ledger in build/battery holds one line of JSON
a seed and digest, the files of a failing case stay beside it.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "battery"
COMPILED_EVERY = 8  # seeds: what is compiled runs as what is not, but takes longer to make
PER_PROCESS = 20  # cases: plants are kept, so that memory grows
COMPILER = os.environ.get("FLEXCTL_CC", "")
os.environ.setdefault("FLEXCTL_CACHE", str(FOLDER / "cache"))


def digest() -> str:
    """Digest of all sources that an answer depends on."""
    files = sorted([*(ROOT / "flexctl").rglob("*.[pch]*"), *Path(__file__).parent.glob("*.py")])
    texts = (path.read_bytes() for path in files if path.suffix in {".py", ".c", ".h"})
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def done(ledger: Path, sources: str) -> dict[int, dict]:
    """Entries of the ledger by seed, of these sources."""
    if not ledger.exists():
        return {}
    entries = [json.loads(line) for line in ledger.read_text().splitlines() if line.endswith("}")]
    return {entry["seed"]: entry for entry in entries if entry["sources"] == sources}


def run_seed(seed: int) -> dict:
    """Check one case and return its line of the ledger."""
    from tests.battery.checks import check_case
    from tests.battery.random_case import random_case

    compiled = seed % COMPILED_EVERY == COMPILED_EVERY - 1
    os.environ["FLEXCTL_CC"] = COMPILER if compiled else "none"
    begun = time.process_time()
    report = check_case(random_case(seed), FOLDER / f"seed-{seed}")
    return {
        "seed": seed,
        "findings": report.findings,
        "counts": report.counts,
        "seconds": round(time.process_time() - begun, 2),
        "by_check": {name: round(x, 2) for name, x in report.seconds.items()},
    }


def main() -> int:
    """Run what is not done yet, print what was found, return 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    ledger, sources = FOLDER / "ledger.jsonl", digest()
    entries = done(ledger, sources)
    expected = range(options.start, options.start + options.seeds)
    left = [seed for seed in expected if seed not in entries]
    # not concurrent.futures, whose workers hang when they are replaced (python/cpython#115634)
    with multiprocessing.get_context("spawn").Pool(options.jobs, None, (), PER_PROCESS) as pool:
        for entry in pool.imap(run_seed, left):
            entries[entry["seed"]] = entry | {"sources": sources}
            with ledger.open("a") as file:
                file.write(json.dumps(entries[entry["seed"]]) + "\n")
            say(entry)
    return summary([entries[seed] for seed in expected])


def say(entry: dict) -> None:
    """Print one case in a line, its findings beneath."""
    print(
        f"seed {entry['seed']}: {len(entry['findings'])} findings, {entry['seconds']:.1f} s",
        flush=True,
    )
    for finding in entry["findings"]:
        print(f"    {finding}", flush=True)


def summary(entries: list[dict]) -> int:
    """Print what was checked and found in all; 1 if there is a finding."""
    counts = sum((Counter(entry["counts"]) for entry in entries), Counter())
    for name, count in sorted(counts.items()):
        print(f"{count:6d}  {name}")
    failing = [entry["seed"] for entry in entries if entry["findings"]]
    seconds = sum(entry["seconds"] for entry in entries)
    print(f"{len(entries)} cases, {seconds:.0f} s; findings in {len(failing)}: {failing}")
    return int(bool(failing))


if __name__ == "__main__":
    sys.exit(main())
