"""The command line: ``flexctl COMMAND MODEL [DESIGN ...]``; see docs/reference/cli.md.

Nothing slow is imported here, so that help comes at once; each command imports what it needs.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click
from click.shell_completion import shell_complete

from flexctl import __version__
from flexctl.errors import FlexctlError, FlexctlWarning, InputError
from flexctl.view.interrupts import heard, signalled
from flexctl.view.options import (
    BodeOptions,
    CliOptions,
    CompareOptions,
    CountOptions,
    InspectOptions,
    ListOptions,
    MarginOptions,
    SeparationOptions,
    SimulateOptions,
    SweepOptions,
    TrackOptions,
    TuneOptions,
    click_options,
)
from flexctl.view.output import deliver, said, silence, tell, written
from flexctl.view.requirements import read_requirements

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


class _Command(click.Command):
    """A command that refuses an option given again whose last value alone would count."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        if not ctx.resilient_parsing:  # a shell asks what may follow
            _, _, given = self.make_parser(ctx).parse_args(args=[*args])
            single = [one for one in given if isinstance(one, click.Option) and not one.multiple]
            for option in single:
                if single.count(option) > 1 and (option.secondary_opts or not option.is_flag):
                    name = max(option.opts, key=len)
                    times = single.count(option)
                    raise click.UsageError(f"{name}: expected once, got {times} times", ctx)
        return super().parse_args(ctx, args)


_MODEL, _DESIGN = click.Argument(["model"]), click.Argument(["design"])
_COMMANDS = {  # function of flexctl.view.commands, its options, the arguments after them
    "list": ("listing.list_files", ListOptions, ()),
    "inspect": ("inspection.inspect_model", InspectOptions, (_MODEL,)),
    "simulate": ("simulation.simulate_design", SimulateOptions, (_MODEL, _DESIGN)),
    "compare": (
        "comparison.compare_designs",
        CompareOptions,
        (_MODEL, click.Argument(["designs"], nargs=-1, required=True)),
    ),
    "sweep": (
        "sweeping.sweep_designs",
        SweepOptions,
        (_MODEL, click.Argument(["designs"], nargs=-1, required=True)),
    ),
    "tune": ("tuning.tune_design", TuneOptions, (_MODEL, _DESIGN)),
    "bode": ("frequency.draw_bode", BodeOptions, (_MODEL, _DESIGN)),
    "separation": ("separation.separate", SeparationOptions, (_MODEL, _DESIGN)),
    "margin": ("margin.measure_margin", MarginOptions, (_MODEL, _DESIGN)),
    "track": ("loci.track_design", TrackOptions, (_MODEL, _DESIGN)),
    "count": (
        "counting.count_arm",
        CountOptions,
        (_MODEL, click.Argument(["design"], required=False)),
    ),
}


def _add(name: str, function: str, record: type[CliOptions], words: Sequence[Any]) -> None:
    """Add a command, which imports what it needs when it runs."""

    def compute(**given: Any) -> int:
        """Check the options, compute, hand over; return the status."""
        module, _, of = function.partition(".")
        arguments = [given.pop(word.name) for word in words]
        options = record(**given)
        requirements = read_requirements(options.require)
        command = getattr(import_module(f"flexctl.view.commands.{module}"), of)
        result = command(options, *arguments)
        unmet = deliver(result, options, requirements)
        if result.incomplete:
            return INTERRUPTED if signalled.is_set() else FAILED
        return NOT_MET if unmet else DONE

    params = [*words, *click_options(record)]
    cli.add_command(_Command(name, params=params, callback=compute, help=record.__doc__))


for _name, _command in _COMMANDS.items():
    _add(_name, *_command)


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; nothing is raised.

    0 done; 1 a --require condition does not hold; 2 bad input; 3 a computation failed;
    130 interrupted; 141 the reader of standard output went away.

    Parameters
    ----------
    argv
        Words after ``flexctl``; those of the process by default.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if COMPLETION in os.environ:
        return shell_complete(cli, {}, "flexctl", COMPLETION, os.environ[COMPLETION])
    written.clear()
    said.clear()
    with heard(_end_at_once, last=argv is None):
        try:
            return _run_quietly(words)
        except (KeyboardInterrupt, click.Abort):
            return _interrupted()
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
    except FlexctlError as error:
        if signalled.is_set():
            raise KeyboardInterrupt from error
        status = BAD_INPUT if isinstance(error, InputError) else FAILED
        return _complain(str(error), status, debug=debug)
    except MemoryError:
        return _complain("out of memory: choose a coarser truth plant", FAILED, debug=debug)
    except OSError as error:
        if error.filename or error.errno not in _FULL:
            return _internal(error, debug=debug)
        silence("stdout")  # all other files say their names
        line = f"standard output: cannot be written: {error.strerror}"
        return _complain(line, FAILED, debug=debug)
    except Exception as error:
        if signalled.is_set():  # a library has put an exception of its own in its place
            raise KeyboardInterrupt from error
        return _internal(error, debug=debug)


def _internal(error: Exception, *, debug: bool) -> int:
    line = f"internal error, {type(error).__name__}: {error} (--debug shows where)"
    return _complain(line, FAILED, debug=debug)


def _show(message: Warning | str, category: type[Warning], *_place: object) -> None:
    """Show a warning in one line, without where in the code it came from."""
    line = " ".join(str(message).split())
    if line in said:  # an arm may be loaded more than once
        return
    if issubclass(category, FlexctlWarning):
        said.append(line)
    else:
        line = f"{category.__name__}: {line}"
    tell(f"warning: {line}")


def _interrupted() -> int:
    """Say that nothing was written, or what was before the interrupt came."""
    files = f"{', '.join(map(str, written))} written" if written else "nothing written"
    tell(f"interrupted, {files}")
    return INTERRUPTED


def _end_at_once() -> None:
    """End a process that hears no interrupt: remove what it was writing, say so, and leave."""
    from flexctl.model import drafts, remove_draft

    for draft in [*drafts]:
        remove_draft(draft)
    if sys.stderr.isatty():
        sys.stderr.write("\x1b[?25h")  # the cursor, which a line of progress hides
    _interrupted()
    os._exit(INTERRUPTED)


def _complain(message: str, status: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    tell(" ".join(message.split()))
    return status
