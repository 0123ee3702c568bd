"""Corrections of a model, compared on rows that no method has seen.

A run is a (dataset, situation, method, seed); the methods of one (dataset, situation, seed) share
the model that is corrected and the rows.
"""

from typing import Any

from pipeline.boosting.peers import METHODS
from pipeline.boosting.peers.algorithm import estimator_defaults
from pipeline.config.schema import Config
from pipeline.datasets.design import Design
from pipeline.errors import ConfigError
from pipeline.runs.keys import Key, dataset_key, key_hash
from pipeline.runs.kinds.base import Kind, OnRound, Run, Setting
from pipeline.runs.kinds.corrections.methods import candidates, require_package
from pipeline.runs.kinds.corrections.run import Ground, run
from pipeline.runs.kinds.rounds import KIND as ROUNDS

CLASSES = 3.0  # times as long as a fit to numbers


class Corrections(Kind):
    """Methods that correct a model, in situations that a model may be in.

    numerics : raised by hand when the same config starts to give other numbers; stored runs then
    count as stale.
    """

    name = "corrections"
    title = "corrections of a model"
    axes = ("dataset", "situation", "method")
    folder = "cases"
    stages = ("run", "reproduce", "report")
    otherwise = "experiment=paper is a grid of rounds"
    shows_rounds = False
    numerics = 3  # 2: segments are tested by `bias_tests`; 3: peers follow their authors' code

    def check(self, config: Config) -> None:
        others = [key for key in config.experiment.further if not key.startswith("method.options.")]
        if others:
            raise ConfigError(
                "experiment.vary: a grid of corrections varies keys of method.options alone, not "
                f"{', '.join(others)}"
            )
        if config.dataset.target_scaling != "none":
            raise ConfigError(
                "dataset.target_scaling: must be none for corrections, which are of targets as "
                "they are"
            )
        if config.situation.model in {"boosted", "truth"}:
            require_package("lightgbm", f"situation={config.situation.name}")
        candidates(config.method)  # may not be installed, or have no such option

    def label(self, config: Config) -> str:
        return f"{config.situation.name}-{config.method.name}"

    def key(self, config: Config, data_sha256: str) -> Key:
        method: dict[str, Any] = config.method.model_dump(mode="json", exclude={"name", "title"})
        if config.method.kind == "estimator":  # its defaults are part of what it does
            method["options"] = estimator_defaults() | method["options"]
        return {
            "practice": self.numerics,
            "data": data_sha256,
            "dataset": dataset_key(config.dataset) | {"sensitive": list(config.dataset.sensitive)},
            "name": config.dataset.label,
            "seed": config.seed,
            "situation": config.situation.model_dump(mode="json", exclude={"name", "title"}),
            "method": method,
            "audit": config.audit.model_dump(mode="json", include={"trees", "depth"}),
        }

    def ground_key(self, config: Config) -> str:
        return key_hash(config.situation.model_dump(mode="json"))

    def size(self, material: Design) -> float:
        return ROUNDS.size(material)

    def cost(self, config: Config, size: float) -> float:
        weight = METHODS[config.method.kind].cost * (config.method.n_candidates + 1)
        return size * weight * (1.0 if config.dataset.positive is None else CLASSES)

    def ground(self, setting: Setting) -> Ground:
        return Ground(setting.config, setting.material)

    def run(self, config: Config, ground: Ground, on_round: OnRound) -> Run:  # noqa: ARG002
        return run(config, ground)


KIND = Corrections()
