"""One self-contained page: what was run, the scorecard, figures, tables, readings, provenance."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.stages.claims import Statement

CAPTIONS: Mapping[str, tuple[str, str]] = {
    "gap": (
        "Prediction gap under Unit",
        "How far a round moves the training predictions. Below, the same on a logarithmic scale, "
        "with the least-squares line of the second half of the rounds and its R². Mean over seeds, "
        "band of one standard deviation.",
    ),
    "training": (
        "Training error",
        "Mean squared error above, multicalibration error below, on logarithmic scales. Relaxed's "
        "first weight, 7/8, pulls predictions towards zero, which costs both errors at first.",
    ),
    "generalization": (
        "Held-out multicalibration error",
        "On the test rows of each split; a star marks the round with the smallest mean. "
        "Logarithmic scale, because Relaxed starts far above the others.",
    ),
    "tail": (
        "Where does the tail begin?",
        "R² of the line for every possible first round: of the mean curve, and shaded the middle "
        "80 % of single runs. Dashed: the choice made here; dotted: the paper's smallest R², 0.78. "
        "Right: the factor by which the gap shrinks per round of the tail.",
    ),
    "best_rounds": (
        "How stable is a best round?",
        "Share of bootstrap samples of the seeds in which a round has the smallest mean test MCE. "
        "The triangle is the best round of all seeds.",
    ),
    "test_errors": (
        "Does the best round for one error suit the other?",
        "Test MSE and test MCE relative to the initial predictor, means over seeds, stars at the "
        "minima.",
    ),
    "readings": (
        "How much does the reading of the paper matter?",
        "Verdict of each statement under raw and standardised targets and under three readings of "
        "the multicalibration error.",
    ),
}

READINGS: Sequence[tuple[str, str, str, str]] = (
    ("Target", "raw units, unless said otherwise", "dataset.target_scaling",
     "With raw targets Relaxed's first weight delays its best round as the paper reports."),
    ("Multicalibration error", "every leaf of 100 random trees of depth 3 is a weak learner",
     "audit=…", "The sample-mean estimator over random trees that the paper describes; two other "
     "readings are recorded beside it."),
    ("Audit trees", "seeded by dataset and seed; thresholds uniform in a node's range", "audit.*",
     "Curves over rounds and strategies then differ by the predictor alone."),
    ("Split", "train_test_split(test_size=0.2, random_state=seed); the paper's grid has seeds 0–19",
     "dataset.test_size", "The text, literally. Training curves use the same splits."),
    ("Test predictions", "every round sees the test rows' own f_t and the training w_t", "—",
     "The only reading under which the result is a predictor."),
    ("Tail of the log-gap", "second half of the rounds", "—",
     "R² for every other start is shown as well."),
    ("Best round", "smallest mean test MCE over rounds 0 to T", "—",
     "Round 0, the initial predictor, may be best; the explanations also say what holds from "
     "round 1 on."),
    ("A round's ensemble", "scikit-learn's GradientBoostingRegressor on y − f_t, its own initial "
     "mean included", "boosting.*, engine=…", "The exact engine grows the same trees."),
    ("Initial predictor", "RandomForestRegressor(100 trees, depth 5) on the training rows",
     "initial.*", "The text, literally."),
    ("Adult", "education dropped, target education-num + hours-per-week, '?' a level, income kept",
     "dataset.drop, dataset.target", "The text; it does not give the 101 columns of Table 1."),
    ("German Credit", "target credit amount; the good/bad class kept", "dataset.target",
     "Gives the paper's 48 columns."),
    ("One-hot encoding", "first level dropped", "dataset.drop_first", "Gives the paper's 48."),
    ("Crime's missing cells", "mean of the training rows", "dataset.missing",
     "The paper keeps 122 features; scikit-learn's boosting takes no missing values."),
)  # fmt: skip


@dataclass(frozen=True)
class Page:
    """All that goes on the page."""

    title: str
    command: str  # that draws this report again
    statements: Sequence[Statement]
    figures: Sequence[str]
    figure_folder: Path
    table1: pd.DataFrame
    records: Sequence[Mapping[str, Any]]
    n_runs: int
    wall_seconds: float | None
    theory: str = ""  # a further chapter, as HTML


def render(page: Page) -> str:
    """The page as HTML that needs no network."""
    body = "\n".join(
        [
            _header(page),
            _scorecard(page.statements),
            *(_figure(page, name) for name in page.figures),
            _table1(page.table1),
            _readings(),
            page.theory,
            _provenance(page),
        ]
    )
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(page.title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{body}</main><script>{SCRIPT}</script></body></html>\n"
    )


def _header(page: Page) -> str:
    record = page.records[0]
    boosting = record["config"]["boosting"]
    counts = pd.Series([s.verdict for s in page.statements]).value_counts()
    tally = ", ".join(f"{counts.get(v, 0)} {v}" for v in ("replicated", "partly", "not replicated"))
    computing = sum(r["duration_seconds"] for r in page.records)
    wall = "" if page.wall_seconds is None else f" This session took {_clock(page.wall_seconds)}."
    return (
        f"<h1>{html.escape(page.title)}</h1>"
        "<p class='lead'>An independent replication of <em>On the Convergence of Multicalibration "
        "Gradient Boosting</em> (Haimovich, Linder, Perini, Tax, Vojnović; arXiv 2602.06773).</p>"
        f"<p>{page.n_runs} runs: {boosting['rounds']} rounds of {boosting['trees']} trees of depth "
        f"{boosting['max_depth']}, η = {boosting['eta']:g}. Boosting took "
        f"{_clock(computing)} of one core in all.{wall}</p>"
        f"<p class='tally'>Statements: {tally}.</p>"
    )


def _scorecard(statements: Sequence[Statement]) -> str:
    rows = []
    for s in statements:
        css = s.verdict.replace(" ", "-")
        why = f"<p><b>Where not:</b> {html.escape(s.explanation)}</p>" if s.explanation else ""
        rows.append(
            f"<tr id='claim-{s.id}'><td>{s.id}</td><td>{html.escape(s.text)}"
            f"<details><summary>measured</summary><p class='narrow'><b>Paper:</b> "
            f"{html.escape(s.paper)}</p><p>{html.escape(s.ours)}</p>{why}"
            f"<p><b>Rule:</b> {html.escape(s.rule)}</p></details></td>"
            f"<td>{html.escape(s.paper)}</td>"
            f"<td><span class='verdict {css}'>{s.verdict}</span></td></tr>"
        )
    return (
        "<h2>Scorecard</h2><div class='scroll'><table class='score'><thead><tr><th></th>"
        "<th>Statement</th><th>Paper</th><th>Verdict</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
        "<p class='note'>Every rule is code, written before the outcome was looked at; open a row "
        "for the measured values, their spread over seeds, and the rule.</p>"
    )


def _figure(page: Page, name: str) -> str:
    title, caption = CAPTIONS[name]
    data = base64.b64encode((page.figure_folder / f"{name}.png").read_bytes()).decode()
    again = (
        "# redraw from the stored runs\n"
        f"{html.escape(page.command)}\n"
        "# one curve of a panel, for any dataset, strategy and seed\n"
        "python -m pipeline dataset=german strategy=relaxed seed=3"
    )
    return (
        f"<section class='{name}'><h2>{html.escape(title)}</h2><figure>"
        f"<a class='zoom' href='#' title='zoom'><img alt='{html.escape(title)}' "
        f"src='data:image/png;base64,{data}'></a>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        f"<details class='again'><summary>run it again</summary><pre>{again}</pre></details>"
        "</section>"
    )


def _table1(table: pd.DataFrame) -> str:
    rows = []
    for row in table.to_dict("records"):
        cells = "".join(
            f"<td class='{'same' if row[f'{w}_paper'] == row[f'{w}_ours'] else 'other'}'>"
            f"{row[f'{w}_paper']} / {row[f'{w}_ours']}</td>"
            for w in ("raw", "features", "rows")
        )
        rows.append(
            f"<tr><td>{html.escape(str(row['dataset']))}</td>{cells}"
            f"<td>{html.escape(str(row['why']))}</td></tr>"
        )
    return (
        "<h2>Table 1, paper / ours</h2><div class='scroll'><table><thead><tr><th>Dataset</th>"
        "<th>Raw features</th><th>Features</th><th>Data points</th><th>Why they differ</th></tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _readings() -> str:
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in READINGS
    )
    return (
        "<h2>How the paper was read where it is silent</h2><div class='scroll'><table><thead><tr>"
        "<th>Question</th><th>Here</th><th>Key</th><th>Why</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _provenance(page: Page) -> str:
    record = page.records[0]
    versions = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    commits = sorted({str(r["git_commit"]) for r in page.records})
    cpus = sorted({str(r["cpu"]) for r in page.records})
    hashes = sorted({(r["key"]["name"], r["data_sha256"]) for r in page.records})
    seeds = sorted({int(r["seeds"]["split"]) for r in page.records})
    data = "".join(
        f"<tr><td>{html.escape(str(n))}</td><td><code>{h}</code></td></tr>" for n, h in hashes
    )
    return (
        "<h2>Provenance</h2>"
        f"<p>{html.escape(versions)}. Processor: {html.escape(', '.join(cpus))}. "
        f"Code: {html.escape(', '.join(commits))}. Seeds: {_ranges(seeds)}; the seed of every axis "
        "(split, initial predictor, each round, audit) is in each run's <code>run.json</code>.</p>"
        "<div class='scroll'><table><thead><tr><th>Dataset</th><th>sha256 of the table's content"
        f"</th></tr></thead><tbody>{data}</tbody></table></div>"
    )


def _ranges(values: Sequence[int]) -> str:
    if list(values) == list(range(values[0], values[-1] + 1)) and len(values) > 1:
        return f"{values[0]}–{values[-1]}"
    return ", ".join(map(str, values))


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} minutes"


STYLE = """
:root{--bg:#fff;--fg:#1b1f24;--muted:#57606a;--line:#d8dee4;--soft:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e6edf3;--muted:#9aa4af;--line:#30363d;
--soft:#1c2128}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.55 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0}h1:not(:first-of-type){margin-top:3rem}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem}
.lead,.note,figcaption{color:var(--muted)}.tally{font-weight:600}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.45rem .6rem;border-bottom:1px solid var(--line)}
th{white-space:nowrap}
.score td:first-child{white-space:nowrap;color:var(--muted)}
details{font-size:.88rem;color:var(--muted)}details p{margin:.35rem 0}summary{cursor:pointer}
.verdict{display:inline-block;white-space:nowrap;padding:.1rem .55rem;border-radius:1rem;
font-size:.82rem;font-weight:600}
.replicated{background:#009e73;color:#fff}.partly{background:#f0e442;color:#1b1f24}
.not-replicated{background:#d55e00;color:#fff}
figure{margin:0}
.zoom{display:block;background:#fff;border:1px solid var(--line);border-radius:6px;padding:6px;
overflow:auto}
.zoom img{display:block;width:100%;height:auto}.zoom.in img{width:230%;max-width:none}
.readings .zoom{max-width:680px}.narrow{display:none}
figcaption{font-size:.9rem;margin:.45rem 0}
pre{background:var(--soft);border:1px solid var(--line);border-radius:6px;padding:.6rem .8rem;
overflow-x:auto;font-size:.82rem;color:var(--fg)}
code{font-size:.8rem;word-break:break-all}.other{font-weight:700}
@media(max-width:640px){.score th:nth-child(3),.score td:nth-child(3){display:none}
.narrow{display:block}.readings .zoom img{width:100%}body{font-size:15px}
main{padding:1rem .7rem 3rem}.zoom img{width:240%;
max-width:none}.zoom.in img{width:480%}}
@media print{body{font-size:10pt}.again{display:none}h2,figure,tr{break-inside:avoid}}
"""

SCRIPT = """
document.querySelectorAll('.zoom').forEach(a=>a.addEventListener('click',e=>{
e.preventDefault();a.classList.toggle('in')}));
addEventListener('beforeprint',()=>document.querySelectorAll('.score details').forEach(
d=>d.open=true));
"""
