"""``stage=table1``: the paper's Table 1 and ours, under any ``dataset.`` overrides."""

from pipeline.analysis.paper import TABLE1
from pipeline.analysis.table1 import table_of_designs
from pipeline.config.compose import load_all
from pipeline.runs.plan import Plan


def main(plan: Plan) -> None:
    """Count on the data of all five datasets, whatever dataset or grid was chosen."""
    settings = [line for line in plan.overrides if line.lstrip("+").startswith("dataset.")]
    datasets = [c.dataset for c in load_all([[*settings, f"dataset={d}"] for d in TABLE1])]
    table = table_of_designs({d.label: (d.display, plan.library.design(d)) for d in datasets})
    print(table.drop(columns="why").to_string(index=False))
    for name, why in zip(table["dataset"], table["why"], strict=True):
        if why:
            print(f"\n{name}: {why}")
