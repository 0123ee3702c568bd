"""The scripts a maintainer runs: each is run here, on little."""

import json
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest

from pipeline.paths import ROOT

pytestmark = pytest.mark.slow


def script(name, *arguments, **environment):
    return subprocess.run(
        [sys.executable, f"scripts/{name}.py", *map(str, arguments)],
        cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_equal_result_matches_the_reference(smoke):
    done = script("check_reference", smoke, "--reference", smoke)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "84 of 84 reference rows" in done.stdout
    assert done.stdout.count("identical") == len(pd.read_parquet(smoke / "rounds.parquet").T) - 4


def test_difference_from_the_reference_is_located(smoke, tmp_path):
    rounds = pd.read_parquet(smoke / "rounds.parquet")
    rounds.loc[rounds["round"] == 3, "mse_test"] *= 1.2
    rounds.to_parquet(tmp_path / "rounds.parquet")
    reference = tmp_path / "reference"
    reference.mkdir()
    shutil.copy(smoke / "rounds.parquet", reference)
    for folder, verdict in ((tmp_path, "invented"), (reference, "partly")):
        (folder / "claims.json").write_text(json.dumps([{"id": "1a", "verdict": verdict}]))
    done = script("check_reference", tmp_path, "--reference", reference)
    assert done.returncode == 1
    assert re.search(r"mse_test +12 values differ, at most by 2.0e-01 .*BEYOND", done.stdout)
    assert "claim 1a: invented instead of" in done.stdout


def test_absent_result_is_named(tmp_path):
    assert script("check_reference", tmp_path).returncode == 2


@pytest.mark.exhaustive
def test_parity_of_one_dataset_is_measured_and_judged():
    done = script("parity", "diabetes", "--splits", 3)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        len(re.findall(r"diabetes +(?:unit|relaxed|adaptive) +20 rounds: \S+ sd", done.stdout)) == 3
    )
    assert re.search(r"held out, 3 splits: [01]\.\d\d times scikit-learn reseeded", done.stdout)


@pytest.mark.exhaustive
def test_snapshot_that_cannot_be_compared_is_said_to_be_unconfirmed():
    # No network: a proxy that is not there refuses at once.
    nowhere = "http://127.0.0.1:9"
    done = script("verify_snapshot", http_proxy=nowhere, https_proxy=nowhere)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "diabetes     not on OpenML (scikit-learn ships it)" in lines
    assert sum("NOT CONFIRMED: OpenML dataset" in line for line in lines) == 4


def test_benchmark_of_rounds_prints_a_ratio_for_every_rival():
    for rival in ("lightgbm", "xgboost"):
        pytest.importorskip(rival, reason="extra 'bench'")
    done = script("bench", "rounds", "--datasets", "diabetes")
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"[\d.]+ \([\d.]+\)", done.stdout.splitlines()[-1])) == 3


@pytest.mark.exhaustive
def test_benchmark_of_forests_compares_with_sklearns():
    done = script("bench", "forest", "--datasets", "diabetes")
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"diabetes +exact +\S+ s +scikit-learn +\S+ s +\S+ \(\S+\) times", last)


@pytest.mark.exhaustive
def test_benchmark_of_a_grid_compares_both_engines():
    few = ("--settings", "boosting.rounds=2", "boosting.trees=10")
    done = script("bench", "grid", "--datasets", "diabetes", *few)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"all +exact +\S+ s +scikit-learn +\S+ s +\S+ times", last)


def test_peers_audit_is_held_against_ours_on_the_same_samples():
    pytest.importorskip("mcgrad", reason="extra 'peers'")
    done = script("peers", "--samples", 3)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()[2:]] == ["0.0", "0.1", "0.2"]


@pytest.mark.exhaustive
def test_attack_in_small_is_survived():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.attack", "stores", "tables", "signals", "--tries", "6"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r" 6 tries +6 survived", done.stdout)) == 3
    assert done.stdout.count("identical: yes") == 2
