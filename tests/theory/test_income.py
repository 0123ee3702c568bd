"""The log-loss on Adult's income label."""

from pipeline.config.compose import load_all
from pipeline.theory import income


def test_income_study_obeys_the_settings_and_its_numbers_are_the_classifiers(library):
    lines = ["dataset=adult", "boosting.rounds=2", "boosting.trees=3", "dataset.test_size=0.5"]
    configs = load_all([[*lines, f"strategy={s}"] for s in ("unit", "adaptive")])
    rounds = income.measure(configs, library.table(configs[0].dataset))
    assert rounds.groupby("strategy").size().to_dict() == {"adaptive": 3, "unit": 3}
    assert rounds["gap"].isna().sum() == 2
    first = rounds.groupby("strategy").first()
    assert first["loss_test"]["unit"] == first["loss_test"]["adaptive"]  # the same forest
    assert (rounds.groupby("strategy")["loss_train"].diff().dropna() < 0).all()
