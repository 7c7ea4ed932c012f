"""The command ``flexctl``, also as ``python -m flexctl``."""

import sys


def main() -> int:
    """Run the command line on sys.argv and return its exit status (see `flexctl.view.cli`)."""
    from flexctl.view.cli import run

    return run()


if __name__ == "__main__":
    sys.exit(main())
