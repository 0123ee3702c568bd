"""The command line: checks everything before Hydra starts, then runs the stage asked for."""

import logging
import os
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from pipeline import interrupts, streams
from pipeline.config import compose
from pipeline.config.compose import choices, explained, load
from pipeline.config.overrides import SEARCH_PATH, folders, readable, with_search_path
from pipeline.config.schema import GROUPS, Config, leaves
from pipeline.errors import Interrupted, UserError
from pipeline.paths import CONF

log = logging.getLogger("pipeline")

DRIVER = "MCBOOST_DRIVER"  # tells a launcher's processes whose jobs they are
MULTIRUN = ".multirun"  # the folder of multiruns, below the output folder

EXAMPLES = """\
  python -m pipeline dataset=german strategy=adaptive seed=7     one run
  python -m pipeline experiment=smoke                            a small grid, in parallel
  python -m pipeline experiment=paper                            the paper's grid
  python -m pipeline -m dataset=german,adult 'seed=range(0,20)'  a Hydra sweep
  python -m pipeline dataset=adult stage=preprocess              look at a design matrix
  python -m pipeline experiment=correction dataset=adult situation=moved method=ours
  python -m pipeline strategy=custom strategy.target=my_module.Halfway
  python -m pipeline dataset=file dataset.path=my.csv dataset.target=price
  python -m pipeline dataset=openml dataset.id=44977 dataset.target=medianHouseValue
  python -m pipeline dataset=parquet dataset.path=folder/ dataset.target=y engine=lightgbm"""


def main() -> None:
    """Entry point of ``python -m pipeline``."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")  # before numpy is loaded: a process is one thread
    os.environ[DRIVER] = str(os.getpid())
    streams.tolerate_broken_streams()
    try:
        args = _parser().parse_intermixed_args()
        overrides = with_search_path(readable(args.overrides), args.config_dir)
        if args.help:
            print(help_text(overrides))
            return
        _rewrite_arguments(args.overrides, overrides)
        first = None
        if not (args.hydra_help or args.info or args.shell_completion):
            first = compose.check_overrides(overrides, multirun=args.multirun)
        if args.multirun:
            if first is None:
                _hydra_main()
            else:
                _sweep(overrides, Path(first.output_dir))
        else:
            os.environ["HYDRA_FULL_ERROR"] = "1"  # an error reaches us instead of being printed
            with explained(overrides):
                _hydra_main()
    except UserError as error:
        _fail(error)


def _rewrite_arguments(given: Sequence[str], overrides: Sequence[str]) -> None:
    """Hydra reads ``sys.argv`` itself; it wants all overrides in one row.

    Its flag ``--config-dir`` is among the overrides by now, as a search path.
    """
    flags, skip = [], False
    for argument in sys.argv[1:]:
        if skip or argument in given:
            skip = False
        elif argument.startswith(("--config-dir", "-cd")):
            skip = argument in {"--config-dir", "-cd"}  # the folder is an argument of its own
        else:
            flags.append(argument)
    sys.argv[1:] = [*flags, *overrides]


def _sweep(overrides: Sequence[str], outputs: Path) -> None:
    """A multirun and a table of its runs, after what Hydra would find out with a traceback."""
    folder = outputs / MULTIRUN
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"output_dir: cannot write to {folder} ({error.strerror})") from None
    if "hydra/launcher=slurm" in overrides and shutil.which("srun") is None:
        raise UserError(
            "hydra/launcher=slurm: there is no srun here, so this is no Slurm cluster; "
            "hydra/launcher=slurm_local tries the same on this machine"
        )
    from pipeline.runs.sweeps import told_together  # late, so that a wrong key is answered at once

    with told_together(folder / os.environ[DRIVER]):
        _hydra_main()


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _hydra_main(raw: DictConfig) -> None:
    interrupts.end_at_once()  # here too, because a launcher's processes start here
    if str(os.getppid()) == os.environ.get(DRIVER):
        interrupts.end_with(os.getppid())  # joblib's would outlive a killed driver by minutes
    streams.tolerate_broken_streams()
    _log_to_stderr()
    job = HydraConfig.get()
    given, multirun = job.overrides, job.mode == RunMode.MULTIRUN
    searched = [line for line in given.hydra if line.startswith(f"{SEARCH_PATH}=")]
    # A user's own strategy lies in the current folder, or next to the user's own configs.
    sys.path[:0] = [str(p) for p in (Path.cwd(), *folders(searched)) if str(p) not in sys.path]
    try:
        config = compose.typed(raw)
        notes = Path(config.output_dir) / MULTIRUN / os.environ.get(DRIVER, "")
        run_stage(config, (*searched, *given.task), notes if multirun else None)
    except UserError as error:
        if multirun and not isinstance(error, Interrupted):
            # Hydra shows the first failure of a sweep only; each job reports its own.
            log.error("error: %s", error)
            raise
        _fail(error)


def run_stage(config: Config, overrides: tuple[str, ...], notes: Path | None = None) -> None:
    """Do what ``stage=`` asks for with the plan that ``overrides`` make.

    notes : where a job of a multirun tells the driver what its run came to.
    """
    # Imported here so that --help and a wrong key answer at once.
    from pipeline.runs.plan import make_plan

    stage = import_module(f"pipeline.stages.{config.stage}")
    stage.main(make_plan(config, overrides, notes))


def help_text(overrides: Sequence[str] = ()) -> str:
    """What ``--help`` prints: the menu, every key and what it allows, and examples.

    overrides : of which a search path adds to the menu.
    """
    defaults = load()
    width = max(len(key) for key, _ in leaves())
    menu = "\n".join(
        f"  {group:<{width}}  {', '.join(choices(group, overrides))}" for group in GROUPS
    )
    launchers = ", ".join(choices("hydra/launcher", overrides))
    keys = "\n".join(f"  {key:<{width}}  {text}{_default(defaults, key)}" for key, text in leaves())
    return (
        "Replication of 'On the Convergence of Multicalibration Gradient Boosting'.\n\n"
        "usage: python -m pipeline [-m] [KEY=VALUE ...]\n\n"
        f"{EXAMPLES}\n\n"
        "Menus (GROUP=CHOICE; each choice is a file in conf/GROUP/, or in a folder of your own\n"
        "with the same groups: --config-dir FOLDER):\n"
        f"{menu}\n  {'hydra/launcher':<{width}}  {launchers} (with -m)\n\n"
        "Keys (KEY=VALUE), what they must be, and the default:\n"
        f"{keys}\n\n"
        "--cfg job   print the resolved config instead of running it\n"
        "-m          multirun: every combination of comma-separated values\n"
        "--hydra-help  flags of Hydra itself"
    )


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


def _default(config: Config, key: str) -> str:
    value: object = config
    for part in key.split("."):
        value = getattr(value, part, None)
    return "" if value is None or value == () else f" [{value}]"


def _parser() -> ArgumentParser:
    try:
        return get_args_parser()
    except ValueError as error:  # Hydra 1.3 describes an option as Python 3.14 does not allow
        raise UserError(
            f"Python {sys.version.split()[0]}: Hydra cannot read the command line on it ({error}); "
            "use 3.11 to 3.13, such as: make PYTHON=python3.13 setup"
        ) from None


def _fail(error: UserError) -> NoReturn:
    print("error:", " ".join(str(error).splitlines()), file=sys.stderr)
    sys.exit(error.exit_status)
