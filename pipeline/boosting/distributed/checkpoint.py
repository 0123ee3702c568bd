"""The rounds of a fit in a folder, each whole or absent, so that a fit that was stopped can go on.

fit.json           a readable description of the fit
round-0000.json    f_0 and its loss; round-0001.json and so on: a round's trees, w_t, gap, loss
"""

import hashlib
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..engines.nodes import lightgbm_nodes
from .parts import Unfit


@dataclass(frozen=True)
class Saved:
    """What is kept of a round, or of the start.

    loss : the mean loss.  The others have an entry for each trajectory: constants are added to the
    trees, models are the round's trees; at the start there is one model, f_0, or None if that was
    given.
    """

    loss: float
    models: Sequence[str | None]
    weights: Sequence[float] = ()
    gaps: Sequence[float] = ()
    constants: Sequence[float] = ()


class Checkpoint:
    """The rounds kept in ``folder`` of the fit that ``fingerprint`` describes.

    Raises `Unfit` if the folder holds another fit.
    """

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, Any]) -> None:
        self.folder = Path(folder).expanduser()
        ours = json.loads(json.dumps(fingerprint))
        theirs = _read(self.folder / "fit.json") or ours
        differences = [
            f"{name}: {_short(theirs.get(name))} there, {_short(ours.get(name))} here"
            for name in sorted({*ours, *theirs})
            if ours.get(name) != theirs.get(name)
        ]
        if differences:
            raise Unfit(
                f"{self.folder}: holds the rounds of another fit ({'; '.join(differences)})"
            )
        _write(self.folder / "fit.json", ours)

    @staticmethod
    def shards_in(folder: str | Path | None) -> int | None:
        """The number of shards of the fit in a folder, if there is one."""
        known = None if folder is None else _read(Path(folder).expanduser() / "fit.json")
        return None if known is None else known.get("n_shards")

    def __str__(self) -> str:
        """The folder."""
        return str(self.folder)

    def load(self) -> list[Saved]:
        """The start and the rounds, up to the first that is absent or damaged."""
        found: list[Saved] = []
        while True:
            content = _read(self._place(len(found)))
            try:
                saved = Saved(**(content or {}))
                if found:  # at the start there may be another predictor than trees
                    for model, constant in zip(saved.models, saved.constants, strict=True):
                        lightgbm_nodes(str(model), float(constant))
                found.append(saved)
            except (TypeError, ValueError):  # absent, damaged, or written by another version
                return found

    def save(self, t: int, saved: Saved) -> None:
        """Keep round t; 0 is the start."""
        _write(self._place(t), asdict(saved))

    def _place(self, t: int) -> Path:
        return self.folder / f"round-{t:04d}.json"


def _sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """A content with its hash, by which damage is noticed."""
    text = json.dumps(content, indent=1, sort_keys=True)
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "content": json.loads(text)}


def _write(path: Path, content: Mapping[str, Any]) -> None:
    scratch = path.with_name(f".{path.name}-{os.getpid()}-{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)  # another driver may have removed it
        scratch.write_text(json.dumps(_sealed(content), indent=1))
        scratch.replace(path)
    except OSError as error:
        raise Unfit(f"{path}: cannot be written ({error.strerror})") from None


def _read(path: Path) -> dict[str, Any] | None:
    if not path.is_file():  # a pipe would never end
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        whole = found["sha256"] == _sealed(found["content"])["sha256"]
        return found["content"] if whole else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
