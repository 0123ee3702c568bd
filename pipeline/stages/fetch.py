"""``stage=fetch``: get the raw table and say what it is."""

from pipeline.runs.plan import Plan


def main(plan: Plan) -> None:
    """Fetch the chosen dataset."""
    dataset = plan.config.dataset
    table = plan.library.table(dataset)
    print(
        f"{dataset.display}: {len(table.frame)} rows x {table.frame.shape[1]} columns from "
        f"{table.origin}, content sha256 {table.sha256[:16]}…"
    )
