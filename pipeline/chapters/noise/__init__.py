"""Is there anything to calibrate? The test MCE against its noise floor, before and after."""

import numpy as np
import pandas as pd

from pipeline.analysis.curves import FLOOR, SQUARE, corrected_error
from pipeline.analysis.evidence import Evidence
from pipeline.boosting.audit import signed_root
from pipeline.chapters.base import Chapter, Context, Section, write_table
from pipeline.chapters.figures.draw import draw_all
from pipeline.report.render import listed, share

P_VALUE = "mce_p_test"
FIGURE = "debiased"


class Noise(Chapter):
    """The test error and what a perfect predictor would show on a sample of this size."""

    title = "Is there anything to calibrate?"
    part = "What do the figures measure?"
    order = 40
    curated = {"paper/noise.csv": "noise.csv"}

    def section(self, context: Context) -> Section:
        evidence = context.evidence
        noise = noise_table(evidence)
        write_table(context.folder / "noise.csv", noise)
        significant = noise["significant_splits"]
        digits = noise[["mce", "floor", "debiased", "low", "high"]].map("{:.3g}".format)
        shown = pd.DataFrame(
            {
                "Dataset": noise["dataset"],
                "Moment": noise["moment"] + " (round " + noise["round"].astype(str) + ")",
                "Plug-in MCE": digits["mce"],
                "Floor": digits["floor"],
                "Debiased": digits["debiased"],
                "Interval": digits["low"] + " to " + digits["high"],
                "Significant splits": significant.map(lambda s: share(s, 0)),
            }
        )
        folder = context.folder / "figures"
        draw_all(evidence, folder, [FIGURE])
        content = {"strategy": evidence.looks[evidence.base].label, "table": shown}
        picture = self.picture(folder / f"{FIGURE}.png", linked=True)
        return Section(content, figures=[picture], facts=_facts(noise))


CHAPTER = Noise()


def _facts(noise: pd.DataFrame) -> dict[str, str]:
    """The datasets whose starting model shows an error beyond noise, and what is left of it."""
    start, best = (noise[noise["moment"] == m].set_index("dataset") for m in ("start", "best"))
    seen = start["low"] > 0
    left = 1 - best["debiased"].clip(lower=0) ** 2 / start["debiased"] ** 2
    removed = {f"removed_{k}": share(left[name], 0) for k, name in enumerate(start.index[seen])}
    return {
        "n": str(len(start)),
        "n_invisible": str((~seen).sum()),
        "visible": listed(start.index[seen]),
        "invisible": listed(start.index[~seen]),
        **removed,
    }


def noise_table(evidence: Evidence) -> pd.DataFrame:
    """Plug-in error, floor and debiased error (signed roots of means over splits) of `Runs.base`.

    At the start, at the round with the smallest debiased square, and at the end. ``low`` and
    ``high`` are mean ± 2 standard errors that respect overlapping splits, as signed roots;
    ``significant_splits`` is the share of splits whose own p-value is below 5 %.
    """
    rows, strategy = [], evidence.base
    for dataset in evidence.datasets:
        squares = evidence.curves(dataset, strategy, SQUARE)
        mean, error = squares.mean(axis=0), corrected_error(squares, evidence.test_share(dataset))
        best = int(mean.argmin())
        for moment, t in (("start", 0), ("best", best), ("end", evidence.n_rounds)):
            columns = ("mce_test", FLOOR, P_VALUE)
            mce, floor, p = (evidence.curves(dataset, strategy, c)[:, t] for c in columns)
            rows.append(
                {
                    "dataset": evidence.titles[dataset],
                    "moment": moment,
                    "round": t,
                    "mce": signed_root(np.square(mce).mean()),
                    "floor": signed_root(np.square(floor).mean()),
                    "debiased": signed_root(mean[t]),
                    "low": signed_root(mean[t] - 2 * error[t]),
                    "high": signed_root(mean[t] + 2 * error[t]),
                    "significant_splits": float((p < 0.05).mean()),
                }
            )
    return pd.DataFrame(rows)
