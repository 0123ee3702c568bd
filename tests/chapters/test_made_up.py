"""A kind of run and a chapter that nobody has heard of: one module, one folder, one YAML.

They are added to a copy of the package, and nothing else in it is touched.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from pipeline.paths import ROOT

KIND = '''
"""Coins: each run tosses one."""

import hashlib

import pandas as pd

from pipeline.runs.keys import key_hash
from pipeline.runs.kinds.base import Kind, Run, record_of


class Coins(Kind):
    """A toss per dataset and seed."""

    name = "coins"
    title = "tosses of a coin"
    axes = ("dataset",)
    folder = "tosses"
    shows_rounds = False

    def label(self, config):
        return "toss"

    def key(self, config, data_sha256):
        return {"coins": 1, "data": data_sha256, "seed": config.seed}

    def ground_key(self, config):
        return key_hash({})

    def size(self, material):
        return 1.0

    def cost(self, config, size):
        return 1.0

    def ground(self, setting):
        return setting

    def run(self, config, ground, on_round):
        side = hashlib.sha256(f"{config.dataset.label}/{config.seed}".encode()).digest()[0] % 2
        table = pd.DataFrame([{"dataset": config.dataset.label, "seed": config.seed, "side": side}])
        return Run(table, record_of(config, ground.data_sha256, 0.0, {}), f"side {side}")


KIND = Coins()
'''

CHAPTER = '''
"""Are the coins fair?"""

import pandas as pd

from pipeline.chapters.base import Chapter, Section, write_judgements, write_table
from pipeline.judgement import Registry, Ruling, grade
from pipeline.report.place import report_folder
from pipeline.report.scorecards import scorecard

judge = Registry()


@judge("Z1", text="The coins are fair.")
def fair(tosses):
    share = tosses["side"].mean()
    verdict = grade([0.1 < share < 0.9])
    return Ruling(measured=f"{share:.0%} heads", rule="between 10 % and 90 %", verdict=verdict)


class Coins(Chapter):
    """Tosses, counted."""

    title = "Are the coins fair?"
    part = "Did it replicate?"
    order = 35
    curated = {"coins/coins.csv": "coins.csv"}

    def measure(self, plan):
        folder = report_folder(plan)
        tosses = pd.concat([stored.rounds for _, _, stored in plan.stored()])
        write_table(folder / "coins.csv", tosses)
        write_judgements(folder / "coins.json", judge.judge_all(tosses))
        return scorecard(judge.judge_all(tosses))

    def section(self, context):
        file = self.result(context, "coins/coins.csv")
        if not file.is_file():
            return None
        tosses = pd.read_csv(file)
        return Section({"table": tosses.astype(str)}, judge.judge_all(tosses))


CHAPTER = Coins()
'''

TEMPLATE = """{% from "macros.html" import frame, verdict %}
{% for judged in section.judgements %}<p>{{ verdict(judged) }} {{ judged.text }}</p>{% endfor %}
{{ frame(chapter.table) }}
"""

EXPERIMENT = """kind: coins
name: coins
chapters: [coins]
datasets: [german, diabetes]
seeds: [0, 1, 2, 3, 4, 5, 6, 7]
"""

# Several commands in one process, which imports once and draws one of the figures.
COMMANDS = """
import json, sys
from pipeline.chapters.figures import FIGURES
from pipeline.cli import main

for name in set(FIGURES) - {"gap", "debiased"}:
    del FIGURES[name]
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    main()
"""


@pytest.mark.slow
def test_a_new_kind_and_a_new_chapter_need_no_other_change(tmp_path):
    for name in ("pipeline", "conf", "data"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("cache"))
    chapter = tmp_path / "pipeline" / "chapters" / "coins"
    chapter.mkdir()
    (tmp_path / "pipeline" / "runs" / "kinds" / "coins.py").write_text(KIND)
    (chapter / "__init__.py").write_text(CHAPTER)
    (chapter / "chapter.html").write_text(TEMPLATE)
    (tmp_path / "conf" / "experiment" / "coins.yaml").write_text(EXPERIMENT)

    coins = ["experiment=coins", "stage=reproduce", "grid.workers=1"]
    small = ["experiment=smoke", "experiment.datasets=[diabetes]", "experiment.strategies=[unit]",
             "experiment.seeds=[0]", "boosting.rounds=6", "boosting.trees=2", "initial.trees=2",
             "grid.workers=1", "experiment.name=small", "stage=reproduce"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps([coins, coins, small])], cwd=tmp_path,
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "16 runs computed" in done.stderr
    assert "Z1   holds  The coins are fair." in done.stdout
    assert "all 16 runs are in outputs/coins already" in done.stderr
    page = (tmp_path / "outputs" / "small" / "report.html").read_text()
    assert '<h3 id="coins">Are the coins fair?</h3>' in page
    assert page.index('id="datasets"') < page.index('id="coins"') < page.index('id="noise"')
