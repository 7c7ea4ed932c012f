"""The command ``flexctl``, also as ``python -m flexctl``."""

import os
import sys


def main() -> int:
    """Run the command line on sys.argv and return its exit status (see `flexctl.view.cli`).

    Linear algebra runs in one thread unless the environment says otherwise: the matrices are
    small, and threads that wait for each other take twice the time.
    """
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from flexctl.view.cli import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
