"""What do this audit and MCGrad's MulticalibrationError call significant? (extra: peers)

Samples of binary outcomes that are calibrated by construction, and the same with a bias planted in
a segment of a tenth of the rows; per sample, whether each p-value is below 5 %. Both get the same
columns; MCGrad makes segments of up to three of them.
"""

import argparse
import time

import numpy as np
import pandas as pd
from mcgrad.metrics import MulticalibrationError

from pipeline.boosting import audit_predictions

LEVEL = 0.05


def sample(seed: int, n: int, bias: float) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": rng.lognormal(size=n),
            "region": rng.choice(["North", "South", "East", "West"], n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    p = 1 / (1 + np.exp(-rng.normal(size=n)))
    inside = (X["age"] <= 43) & (X["region"] == "North")
    truth = np.clip(p + bias * inside, 0, 1)
    return X, pd.Series((rng.random(n) < truth).astype(int)), p


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rows", type=int, default=3000)
    arguments = parser.parse_args()
    print(f"share of {arguments.samples} samples of {arguments.rows} rows with p < {LEVEL}")
    names = ("error", "segments", "MCGrad", "ours s", "MCGrad s")
    print(f"{'planted bias':<14}" + "".join(f"{name:>10}" for name in names))
    for bias in (0.0, 0.1, 0.2):
        hits, seconds = np.zeros(3), np.zeros(2)
        for seed in range(arguments.samples):
            X, y, p = sample(seed, arguments.rows, bias)
            before = time.perf_counter()
            ours = audit_predictions(X, y, p, random_state=seed)
            middle = time.perf_counter()
            theirs = MulticalibrationError(
                df=X.assign(label=y, score=p),
                label_column="label",
                score_column="score",
                categorical_segment_columns=["region", "sex"],
                numerical_segment_columns=["age", "income"],
            ).mce_pvalue
            seconds += [middle - before, time.perf_counter() - middle]
            found = bool((ours.segments["p_value"] < LEVEL).any())
            hits += [ours.p_value < LEVEL, found, theirs < LEVEL]
        shares, times = hits / arguments.samples, seconds / arguments.samples
        print(
            f"{bias:<14}" + "".join(f"{value:>10.3f}" for value in (*shares, *times)),
            flush=True,
        )


if __name__ == "__main__":
    main()
