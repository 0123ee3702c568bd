"""The missing runs of a plan, computed by workers and stored here.

Workers compute and return; only the driver writes. So a run is either in the store or not, whatever
process died when, and workers on other machines need no common file system.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field, replace

from pipeline import files
from pipeline.config.schema import Config
from pipeline.errors import Interrupted, UserError
from pipeline.interrupts import noted
from pipeline.runs.compilation import compile_kernels
from pipeline.runs.kinds.base import Kind
from pipeline.runs.plan import Plan
from pipeline.runs.progress import Progress, RoundTable
from pipeline.runs.store import CorruptRun, RunId, RunStore, clear_errors
from pipeline.runs.tasks import Failure, Outcome, Task
from pipeline.runs.workers import open_workers
from pipeline.runs.workers.base import Workers

log = logging.getLogger("pipeline")

ATTEMPTS = 3  # a task whose worker died is tried again
LOOK_UP = 0.25  # seconds after which the driver looks up from waiting


class GridError(UserError):
    """Some runs failed; the others are stored."""


@dataclass(frozen=True)
class Summary:
    """How a grid went."""

    total: int
    computed: int
    found: int
    seconds: float
    run_seconds: float = 0.0


def run_plan(plan: Plan) -> Summary:
    """Compute what the store lacks of a plan's runs; raises `GridError` if runs failed."""
    store = plan.store
    missing, found = _missing(plan)
    if not missing:
        return Summary(plan.n_runs, 0, found, 0.0)
    store.check_writable()
    store.sweep()
    if found:
        log.info("%d of %d runs are in %s already", found, plan.n_runs, store.root)
    compile_kernels()
    started = time.perf_counter()
    kind = plan.kind
    datasets = {task.dataset: task.configs[0].dataset for task in missing}
    materials = {name: kind.material(plan.library, one) for name, one in datasets.items()}
    advised = [kind.advice(task.configs[0], materials[task.dataset]) for task in missing]
    for line in dict.fromkeys(filter(None, advised)):
        log.info("%s", line)
    sizes = {name: kind.size(material) for name, material in materials.items()}
    one = kind.shows_rounds and not plan.is_grid
    table = RoundTable(quiet=plan.notes is not None) if one else None
    progress = Progress(plan.n_runs, found, materials, table)
    driver = _Driver(store, progress, sizes, plan.n_runs, kind)
    missing.sort(key=lambda task: -driver.cost(task.configs[0]))
    with open_workers(
        kind, plan.config.grid, materials, len(missing), progress.on_round
    ) as workers:
        driver.run(missing, workers)
    if driver.failed:
        raise GridError(_told(driver.failed, plan))
    seconds, found = time.perf_counter() - started, found + driver.found
    return Summary(plan.n_runs, driver.computed, found, seconds, driver.run_seconds)


def _missing(plan: Plan) -> tuple[list[Task], int]:
    """The tasks with runs that are not stored, and how many runs are."""
    missing, found = [], 0
    told: set[str] = set()
    for task in plan.tasks():
        absent = []
        for config in task.configs:
            run_id = task.run_id(config)
            if _stored(plan.store, run_id):
                found += 1
                plan.store.adopt(run_id)
                task.forget(config)  # its driver may have been killed before it did so
                continue
            absent.append(config)
            why = plan.store.why_missing(run_id)
            if why and why not in told:
                told.add(why)
                log.info("stored runs such as %s differ: %s", run_id, why)
        if absent:
            missing.append(replace(task, configs=tuple(absent)))
    return missing, found


def _stored(store: RunStore, run_id: RunId, *, told: bool = False) -> bool:
    try:
        return store.has(run_id)
    except CorruptRun as error:
        if not told:
            log.warning("%s; computing it again", error)
        return False


def _told(failed: Sequence[tuple[RunId, Failure]], plan: Plan) -> str:
    where = plan.store.root / "failures"
    if plan.n_runs == 1:
        ((_, failure),) = failed
        return failure.sentence + ("" if failure.foreseen else f" (its traceback is in {where})")
    names = [str(run_id) for run_id, _ in failed]
    some = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return (
        f"{len(names)} of {plan.n_runs} runs failed ({some}); their tracebacks are in {where}, "
        "and the same command tries them again"
    )


@dataclass
class _Driver:
    """Feeds tasks to workers, a few ahead, and stores what comes back."""

    store: RunStore
    progress: Progress
    sizes: Mapping[str, float]  # see `Kind.size`, by dataset
    total: int
    kind: Kind
    computed: int = 0
    found: int = 0
    run_seconds: float = 0.0
    failed: list[tuple[RunId, Failure]] = field(default_factory=list)

    def cost(self, *configs: Config) -> float:
        """A guess of the time of these runs."""
        return sum(self.kind.cost(c, self.sizes[c.dataset.label]) for c in configs)

    def run(self, missing: Sequence[Task], workers: Workers) -> None:
        """Compute ``missing``; Ctrl-C stops workers in order."""
        # Without other processes there is nothing to put in order: Ctrl-C ends at once.
        watched = noted() if workers.other_processes else contextlib.nullcontext(lambda: False)
        try:
            with watched as interrupted:
                self._drive(missing, workers, interrupted)
        except BaseException:
            workers.stop()
            raise
        finally:
            self.progress.close()

    def _drive(
        self, missing: Sequence[Task], workers: Workers, interrupted: Callable[[], bool]
    ) -> None:
        """Until all tasks are done, or Ctrl-C came."""
        n_runs = sum(len(task.configs) for task in missing)
        if workers.ahead > 1:
            self.progress.say(f"{n_runs} runs to compute with {workers.ahead - 1} workers")
        self.progress.begin(sum(self.cost(*t.configs) for t in missing))
        waiting = [(task, 1) for task in reversed(missing)]
        under_way: dict[Future[Outcome], tuple[Task, int]] = {}
        told: str | None = None
        while waiting or under_way:
            while waiting and len(under_way) < workers.ahead:
                # A dead worker takes all tasks under way with it; which one was to blame shows when
                # each is tried again alone.
                alone = waiting[-1][1] > 1 or any(n > 1 for _, n in under_way.values())
                if alone and under_way:
                    break
                task, attempt = waiting.pop()
                remaining = self._still_missing(task)
                if remaining is None:
                    continue
                initial = None
                if self.kind.keeps_initial:
                    initial = self.store.load_initial(task.dataset, task.seed, task.initial_key)
                under_way[workers.submit(remaining, initial)] = (remaining, attempt)
            done, _ = wait(under_way, timeout=LOOK_UP, return_when=FIRST_COMPLETED)
            if interrupted():
                raise Interrupted(
                    f"interrupted: {self.progress.count} of {self.total} runs are stored; "
                    "the same command goes on from there"
                )
            self.progress.tick()
            trouble = None if done else workers.trouble()
            if trouble and trouble != told:
                self.progress.say(trouble)
            told = trouble
            for future in done:
                task, attempt = under_way.pop(future)
                outcome = _outcome(future, task, last=attempt == ATTEMPTS)
                if outcome is None:
                    waiting.append((task, attempt + 1))
                else:
                    self._keep(task, outcome)

    def _still_missing(self, task: Task) -> Task | None:
        """Another grid on the same store may have finished some of it meanwhile."""
        configs = tuple(
            c for c in task.configs if not _stored(self.store, task.run_id(c), told=True)
        )
        n_found = len(task.configs) - len(configs)
        if n_found:
            self.found += n_found
            done = self.cost(*task.configs) - self.cost(*configs)
            self.progress.found(task.dataset, n_found, done)
        return replace(task, configs=configs) if configs else None

    def _keep(self, task: Task, outcome: Outcome) -> None:
        if outcome.initial is not None:
            self.store.save_initial(task.dataset, task.seed, task.initial_key, outcome.initial)
        self.run_seconds += outcome.seconds
        for config, run in zip(task.configs, outcome.runs, strict=True):
            run_id, cost = task.run_id(config), self.cost(config)
            name = "-".join(run_id.folder.parts)  # its hash tells variations apart
            note = self.store.root / "failures" / f"{name}.txt"
            if isinstance(run, Failure):
                self.failed.append((run_id, run))
                with clear_errors(self.store.root):
                    files.write_text(note, run.traceback)
                self.progress.failed(run_id, run.sentence, cost)
                continue
            self.store.save(run_id, run.rounds, run.record)
            task.forget(config)
            with contextlib.suppress(OSError):  # "failures" may be anything but a folder
                note.unlink(missing_ok=True)
            self.computed += 1
            self.progress.stored(run_id, run, cost)


def _outcome(future: Future[Outcome], task: Task, *, last: bool) -> Outcome | None:
    """What became of a task; None if its worker died and it may be tried again."""
    try:
        return future.result()
    except (BrokenExecutor, CancelledError):
        if not last:
            return None
        failure = Failure("its worker died", "its worker died")
    except Exception as error:
        failure = Failure.of(error)
    return Outcome((failure,) * len(task.configs))
