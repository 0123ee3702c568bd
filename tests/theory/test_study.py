"""What stage=theory measures and writes."""

import numpy as np
import pandas as pd

from pipeline.config.compose import load
from pipeline.runs.kinds.rounds import CommonGround, run
from pipeline.theory import study as study_module
from pipeline.theory.study import Study


def test_study_comes_back_from_its_folder(study, tmp_path):
    assert Study.read(tmp_path) is None
    study.write(tmp_path)
    back = Study.read(tmp_path)
    assert back.findings == study.findings
    for name in ("curves", "exact", "gbdt"):
        pd.testing.assert_frame_equal(getattr(back, name), getattr(study, name))
    findings = (tmp_path / Study.FINDINGS).read_text()
    for other in (findings[:-20], findings.replace('"level"', '"grade"')):
        (tmp_path / Study.FINDINGS).write_text(other)
        assert Study.read(tmp_path) is None  # cut, or of an earlier edition
    (tmp_path / Study.FINDINGS).write_text(findings)
    (tmp_path / Study.TABLES["curves"]).unlink()
    assert Study.read(tmp_path) is None


def test_exact_rounds_on_real_rows_stay_below_both_bounds(study):
    exact = study.exact
    assert exact.groupby(["dataset", "strategy"]).size().to_dict() == {
        (d, s): study_module.EXACT_ROUNDS
        for d in ("german", "diabetes")
        for s in ("unit", "relaxed", "adaptive")
    }
    unit = exact[exact["strategy"] == "unit"]
    smallest = unit.groupby("dataset")["gap"].cummin()
    assert (smallest <= unit["sharp"]).all()
    assert (unit["sharp"] < unit["paper"]).all()


def test_gbdt_rounds_are_those_of_the_estimator(study, design):
    gbdt = study.gbdt.query("dataset == 'german'")
    config = load(["dataset=german", "boosting.rounds=4"])
    ground = CommonGround(config, design("german"))
    rounds = run(config, ground).rounds
    n = len(ground.split.y_train)
    np.testing.assert_allclose(gbdt["gap"], rounds["gap"][1:] / 0.5 / np.sqrt(n), rtol=1e-12)
    np.testing.assert_allclose(gbdt["mce"], rounds["mce_train"][:-1], rtol=1e-12)
