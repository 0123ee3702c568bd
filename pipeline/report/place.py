"""Where a report goes: results of other settings never take the place of a report."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline import files
from pipeline.config.compose import choices
from pipeline.config.overrides import key_of
from pipeline.runs.keys import key_hash
from pipeline.runs.plan import Plan

SETTINGS = "settings.json"
VARIANTS = "variants"
# Overrides that change no number: which experiment, where, by whom and what of it.
_NO_SETTING = re.compile(
    r"\+*(stage|output_dir|experiment|experiment\.name|(hydra|grid|figures|compare|validation)\b.*)$"
)


def report_folder(plan: Plan) -> Path:
    """The experiment's own folder for what its file says; a folder below for anything else.

    The folder of an experiment that comes with the project takes no other settings. Any other is
    taken by the first settings that are reported there.
    """
    root, shipped = plan.store.root, choices("experiment")
    if root.name in shipped:
        other = _given(plan.overrides, "experiment.name") or settings_given(plan.overrides)
        at_home = not other and _given(plan.overrides, "experiment") == root.name
    else:
        taken = (root / "report.html").exists()
        at_home = not taken or _note(root).get("settings") == digest(plan)
    return root if at_home else root / VARIANTS / _slug(plan)


def write_settings(plan: Plan, folder: Path) -> None:
    """Note of which settings the report in a folder is."""
    runs = [str(run.folder) for run in plan.run_ids()]
    note = {"settings": digest(plan), "overrides": list(plan.overrides), "runs": runs}
    files.write_text(folder / SETTINGS, json.dumps(note, indent=2))


def runs_reported(folder: Path) -> set[str] | None:
    """The runs that the report in a folder is of, by their folders; None if that is not known."""
    return set(_note(folder).get("runs", ())) or None


def settings_given(overrides: Sequence[str]) -> list[str]:
    """The overrides that say which numbers are computed."""
    return [line.lstrip("+") for line in overrides if not _NO_SETTING.match(key_of(line))]


def digest(plan: Plan) -> str:
    """A hash of all runs of a plan."""
    return key_hash({"runs": sorted(str(run.folder) for run in plan.run_ids())})


def command_of(overrides: Sequence[str], stage: str | None = None) -> str:
    """The command line with these ``overrides``, for another ``stage`` if one is given."""
    kept = [line for line in overrides if stage is None or key_of(line) != "stage"]
    lines = [*kept, *([f"stage={stage}"] if stage else [])]
    return " ".join(["python -m pipeline", *map(shlex.quote, lines)])


def _note(folder: Path) -> dict[str, Any]:
    """What `write_settings` wrote, if it is there and whole."""
    try:
        note = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}


def _slug(plan: Plan) -> str:
    """``eta=0.3+seeds=0,1-<hash>``: to be read; the hash is of all runs."""
    said = settings_given(plan.overrides)
    text = "+".join(f"{key_of(s).rpartition('.')[2]}={s.partition('=')[2]}" for s in said)
    words = files.slug(text) or _given(plan.overrides, "experiment") or "other"
    return f"{words}-{digest(plan)}"


def _given(overrides: Sequence[str], name: str) -> str | None:
    """What the last override of a key says."""
    values = [line.partition("=")[2] for line in overrides if key_of(line) == name]
    return values[-1] if values else None
