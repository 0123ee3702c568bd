"""Shared by the tests of the theory: a small study, and the statements that do not hold."""

import pytest


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """What stage=theory measures on two datasets, with three random instances of each kind."""
    from pipeline.config.compose import load
    from pipeline.runs.plan import make_plan
    from pipeline.theory.study import conduct

    folder = tmp_path_factory.mktemp("theory")
    datasets = ["experiment=paper", "experiment.datasets=[german,diabetes]", "boosting.rounds=4"]
    lines = [*datasets, f"output_dir={folder}"]
    return conduct(make_plan(load(lines), lines), n=3)


@pytest.fixture(scope="session")
def failing():
    """Statements that fail as stated."""
    return {"M6", "M7", "R5", "R7", "W7", "W8", "H3"}


@pytest.fixture(scope="session")
def narrower():
    """Statements that hold in a narrower regime."""
    return {"M2", "M5", "L6", "W2", "W10"}
