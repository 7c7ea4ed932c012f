"""The command ``flexctl``, also as ``python -m flexctl``."""

import os
import signal
import sys


def main() -> int:
    """Run the command line on sys.argv and return its exit status (see `flexctl.view.cli`).

    Linear algebra runs in one thread unless the environment says otherwise: the matrices are
    small, and threads that wait for each other take twice the time.
    """
    _replace_closed_streams()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        from flexctl.view.cli import run

        return run()
    except KeyboardInterrupt:  # before or after the command itself
        sys.stderr.write("flexctl: interrupted, nothing written\n")
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt


def _replace_closed_streams() -> None:
    """Redirect closed streams to the null device: no file opened later takes their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
