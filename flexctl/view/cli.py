"""The command line: ``flexctl COMMAND MODEL [DESIGN ...]``; see docs/reference/cli.md.

Only click and the standard library are imported here; each command imports what it needs.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import shell_complete

from flexctl import __version__
from flexctl.errors import FlexctlError, FlexctlWarning, InputError
from flexctl.view.options import (
    CliOptions,
    CompareOptions,
    CountOptions,
    InspectOptions,
    MarginOptions,
    SeparationOptions,
    SimulateOptions,
    TrackOptions,
    options,
)

COMPLETION = "_FLEXCTL_COMPLETE"  # a shell sets it when it asks what may follow
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
DONE, NOT_MET, BAD_INPUT, FAILED, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141


@click.group(
    no_args_is_help=False,  # a missing command is bad input, in one line like any other
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="flexctl %(version)s")
def cli() -> None:
    """Control design for robot arms with flexible links.

    MODEL and DESIGN are names of the catalogue (see `flexctl list`) or paths of TOML files.
    All numbers are SI units, radians and rad/s.
    """


@cli.command("list")
@options(CliOptions)
def list_catalogue(options: CliOptions) -> int:
    """Show the catalogue: arms and controller designs."""
    from flexctl.view.commands.listing import list_files

    return _deliver(list_files, options)


@cli.command()
@click.argument("model")
@options(InspectOptions)
def inspect(options: InspectOptions, model: str) -> int:
    """Show what an arm is: coordinates, frequencies, inertia."""
    from flexctl.view.commands.inspection import inspect_model

    return _deliver(inspect_model, options, model)


@cli.command()
@click.argument("model")
@click.argument("design")
@options(SimulateOptions)
def simulate(options: SimulateOptions, model: str, design: str) -> int:
    """Run DESIGN on MODEL once; --out run.nc keeps all signals."""
    from flexctl.view.commands.simulation import simulate_design

    return _deliver(simulate_design, options, model, design)


@cli.command()
@click.argument("model")
@click.argument("designs", nargs=-1, required=True)
@options(CompareOptions)
def compare(options: CompareOptions, model: str, designs: tuple[str, ...]) -> int:
    """Rank gain sets: which DESIGN to use on MODEL, and why."""
    from flexctl.view.commands.comparison import compare_designs

    return _deliver(compare_designs, options, model, designs)


@cli.command()
@click.argument("model")
@click.argument("design")
@options(SeparationOptions)
def separation(options: SeparationOptions, model: str, design: str) -> int:
    """Find how soft MODEL may be before the composite DESIGN destabilises it."""
    from flexctl.view.commands.separation import separate

    return _deliver(separate, options, model, design)


@cli.command()
@click.argument("model")
@click.argument("design")
@options(MarginOptions)
def margin(options: MarginOptions, model: str, design: str) -> int:
    """Find how wrong the stiffness of DESIGN's model of MODEL may be."""
    from flexctl.view.commands.margin import measure_margin

    return _deliver(measure_margin, options, model, design)


@cli.command()
@click.argument("model")
@click.argument("design")
@options(TrackOptions)
def track(options: TrackOptions, model: str, design: str) -> int:
    """Follow the eigenvalues of DESIGN's loop around MODEL along its motion, or over a number."""
    from flexctl.view.commands.loci import track_design

    return _deliver(track_design, options, model, design)


@cli.command()
@click.argument("model")
@click.argument("design", required=False)
@options(CountOptions)
def count(options: CountOptions, model: str, design: str | None) -> int:
    """Count the operations of MODEL's dynamics, and of DESIGN's control law."""
    from flexctl.view.commands.counting import count_arm

    return _deliver(count_arm, options, model, design)


def _deliver(command: Any, options: CliOptions, *words: Any) -> int:
    """Check the options, compute, hand over; 0, or 1 where a requirement does not hold."""
    from flexctl.view.output import deliver
    from flexctl.view.requirements import read_requirements

    requirements = read_requirements(options.require)
    return NOT_MET if deliver(command(options, *words), options, requirements) else DONE


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; nothing is raised.

    0 done; 1 a --require condition does not hold; 2 bad input; 3 a computation failed;
    130 interrupted; 141 the reader of standard output went away.

    Parameters
    ----------
    argv
        Words after ``flexctl``; those of the process by default.
    """
    from flexctl.view.interrupts import heard
    from flexctl.view.output import said, silence, written

    words = list(sys.argv[1:] if argv is None else argv)
    if COMPLETION in os.environ:
        return shell_complete(cli, {}, "flexctl", COMPLETION, os.environ[COMPLETION])
    written.clear()
    said.clear()
    with heard(_end_at_once, last=argv is None):
        try:
            return _run_quietly(words)
        except (KeyboardInterrupt, click.Abort):
            return _interrupted(written)
        except BrokenPipeError:
            silence("stdout")
            return PIPE_CLOSED


def _run_quietly(words: list[str]) -> int:
    """Run a command without the warnings of libraries; those of flexctl are lines."""
    with warnings.catch_warnings():
        if "--debug" not in words:  # what libraries warn of is no message to a user
            warnings.simplefilter("ignore")
            logging.getLogger("matplotlib").setLevel(logging.ERROR)
        warnings.simplefilter("always", FlexctlWarning)
        warnings.showwarning = _show
        return _guarded(words, debug="--debug" in words)


def _guarded(words: list[str], *, debug: bool) -> int:
    """Run the command; every error becomes one line on standard error and a status."""
    from flexctl.view.output import silence

    try:
        with cli.make_context("flexctl", [*words], obj=tuple(words)) as context:
            status = cli.invoke(context) or DONE
        sys.stdout.flush()
        return status
    except click.exceptions.Exit as done:  # --help, --version
        sys.stdout.flush()
        return done.exit_code
    except (BrokenPipeError, click.Abort):
        raise
    except click.ClickException as error:
        line = f"{error.format_message()} (flexctl --help explains)"
        return _complain(line, BAD_INPUT, debug=debug)
    except InputError as error:
        return _complain(str(error), BAD_INPUT, debug=debug)
    except FlexctlError as error:
        return _complain(str(error), FAILED, debug=debug)
    except MemoryError:
        return _complain("out of memory: choose a coarser truth plant", FAILED, debug=debug)
    except OSError as error:
        if error.filename or error.errno not in _FULL:
            return _internal(error, debug=debug)
        silence("stdout")  # all other files say their names
        line = f"standard output: cannot be written: {error.strerror}"
        return _complain(line, FAILED, debug=debug)
    except Exception as error:  # noqa: BLE001 (the last stop: a user never sees a traceback)
        return _internal(error, debug=debug)


def _internal(error: Exception, *, debug: bool) -> int:
    line = f"internal error, {type(error).__name__}: {error} (--debug shows where)"
    return _complain(line, FAILED, debug=debug)


def _show(message: Warning | str, category: type[Warning], *_place: object) -> None:
    """Show a warning in one line, without where in the code it came from."""
    from flexctl.view.output import said

    line = " ".join(str(message).split())
    if line in said:  # an arm may be loaded more than once
        return
    if issubclass(category, FlexctlWarning):
        said.append(line)
    else:
        line = f"{category.__name__}: {line}"
    _tell(f"warning: {line}")


def _interrupted(written: Sequence[Path]) -> int:
    """Say that nothing was written, or what was before the interrupt came."""
    files = f"{', '.join(map(str, written))} written" if written else "nothing written"
    _tell(f"interrupted, {files}")
    return INTERRUPTED


def _end_at_once() -> None:
    """End a process that hears no interrupt: remove what it was writing, say so, and leave."""
    from flexctl.model import drafts, remove_draft
    from flexctl.view.output import written

    for draft in [*drafts]:
        remove_draft(draft)
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h")  # the cursor, which a line of progress hides
    _interrupted(written)
    os._exit(INTERRUPTED)


def _complain(message: str, status: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    _tell(" ".join(message.split()))
    return status


def _tell(line: str) -> None:
    from flexctl.view.output import tell

    tell(line)
