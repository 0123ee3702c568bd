"""The chapter's figures."""

import shutil

import numpy as np
import pandas as pd
import pytest

from pipeline.boosting import PAPER, MulticalibrationBoostingRegressor
from pipeline.boosting.algorithm import advance
from pipeline.chapters.theory import fragments
from pipeline.stages import report
from pipeline.theory.figures import error_parts


def test_chapter_is_drawn_and_rendered_from_what_was_written(
    study, smoke, report_plan, tmp_path, few_figures
):
    shutil.copytree(smoke, tmp_path / "mini")
    study.write(tmp_path / "theory")
    report.main(report_plan(tmp_path))
    page = (tmp_path / "mini" / "report.html").read_text()
    assert page.count('src="data:image/png') == len(few_figures) + 8  # of the theory
    for record in study.findings:
        assert f'id="finding-{record["id"]}"' in page
    assert "python -m pipeline.theory W8" in page
    assert page.count('class="theorem"') == len(fragments()) - 1
    folder = tmp_path / "mini" / "theory"
    assert (folder / "errata.md").read_text().startswith("# Errata")
    certificates = pd.read_csv(folder / "certificates.csv")
    assert (certificates["certified"] > certificates["plug_in"]).all()
    assert (certificates["largest_residual"] < certificates["bound_on_residuals"]).all()


def test_parts_of_the_error_bound_follow_from_stored_curves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] ** 2 + rng.normal(size=60)
    model = MulticalibrationBoostingRegressor(
        **(PAPER | {"n_rounds": 4, "n_trees": 15}), random_state=0
    ).fit(X, y)
    gap = np.concatenate([[np.nan], model.gaps_])
    move, oracle = error_parts(model.losses_, gap, 60, 0.5)
    f = model.init_.predict(X)
    for t, step in enumerate(model.trajectories_[0].rounds):
        h = step.ensemble.predict(X, f)
        assert move[t] == pytest.approx(np.linalg.norm(h) / np.sqrt(60))
        assert oracle[t] == pytest.approx(np.linalg.norm(y - f - h) / np.sqrt(60), rel=1e-6)
        f = advance(f, X, step, 0.5)
