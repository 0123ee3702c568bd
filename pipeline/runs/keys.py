"""What determines a run's numbers: the readable key, its hash, and the seed of every axis."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.boosting.algorithm import round_seed
from pipeline.config.schema import Config, Dataset
from pipeline.runs.strategies import strategy_key

# Bump by hand when the same config starts to give other numbers; stored runs then count as stale.
NUMERICS = 2

_PREPROCESSING = {"target", "drop", "target_scaling", "drop_first", "missing", "test_size"}
_AUDIT = {"reading", "also", "trees", "depth"}

Key = dict[str, Any]


def dataset_key(dataset: Dataset) -> Key:
    """What becomes of a table."""
    key = dataset.model_dump(mode="json", include=_PREPROCESSING)
    if dataset.missing_target != "reject":
        key["missing_target"] = dataset.missing_target
    if dataset.weight is not None:
        key["weight"] = dataset.weight
    return key if dataset.positive is None else key | {"positive": dataset.positive}


def initial_key(config: Config, data_sha256: str) -> Key:
    """All that f_0 depends on."""
    loss = config.boosting.loss
    return ({} if loss == "squared" else {"loss": loss}) | {
        "numerics": NUMERICS,
        "data": data_sha256,
        "dataset": dataset_key(config.dataset),
        "seed": config.seed,
        "initial": config.initial.model_dump(),
    }


def run_key(config: Config, data_sha256: str) -> Key:
    """All that a run's numbers depend on, and nothing else (no paths, workers or sources)."""
    return initial_key(config, data_sha256) | {
        # The audit's trees are drawn from the dataset's name, not from its content.
        "name": config.dataset.label,
        "strategy": strategy_key(config.strategy),
        "boosting": config.boosting.model_dump(exclude={"loss", "gamma"})
        | ({"gamma": config.boosting.gamma} if config.boosting.gamma else {}),
        "engine": config.engine.model_dump(exclude={"threads"}),
        "audit": config.audit.model_dump(mode="json", include=_AUDIT),
    }


def key_hash(key: Mapping[str, Any]) -> str:
    """A short hash of a key, for folder names."""
    text = json.dumps(key, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def differing(key: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Where two keys differ, as ``boosting.eta: 0.3 instead of 0.5``."""
    ours, theirs = dict(flat(key)), dict(flat(other))
    return [
        "data: the table has another content"  # and not two hashes of it
        if name == "data"
        else f"{name}: {ours.get(name, 'absent')} instead of {theirs.get(name, 'absent')}"
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def audit_seed(dataset: str, seed: int) -> int:
    """The seed of the audit's trees: of dataset and seed alone, never of strategy or round."""
    digest = hashlib.sha256(f"audit/{dataset}/{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little")


def seeds(config: Config) -> dict[str, Any]:
    """The seed of every axis of a run, for the record."""
    return {
        "split": config.seed,
        "initial": config.seed,
        "rounds": [round_seed(config.seed, t) for t in range(config.boosting.rounds)],
        "audit": audit_seed(config.dataset.label, config.seed),
    }


def flat(key: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a key with their dotted names."""
    for name, value in key.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
