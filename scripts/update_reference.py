"""Copy what is curated of a full run into ``outputs/reference/``; see CONTRIBUTING.md."""

import argparse
import shutil
import sys
from pathlib import Path

from pipeline.chapters import chapters

# What no chapter owns: the page, the facts that it and the article quote, the article, the table of
# rounds, and the audit.
OF_PAPER = ("report.html", "facts.json", "article.pdf", "rounds.parquet", "audit.html")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outputs", type=Path, default=Path("outputs"))
    outputs = parser.parse_args().outputs
    curated = {f"paper/{name}": name for name in OF_PAPER}
    for chapter in chapters():
        curated |= chapter.curated
    kept = {name for name in curated if not (outputs / name).is_file()}  # experiments not run here
    missing = [name for name in kept if not (outputs / "reference" / curated[name]).is_file()]
    if missing:
        print(f"nothing was copied: {', '.join(sorted(missing))} not there; see CONTRIBUTING.md")
        return 1
    for name, place in curated.items():
        target = outputs / "reference" / place
        if name in kept:
            print(f"{target}: kept")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(outputs / name, target)
        print(f"{target}: {target.stat().st_size / 1024:.0f} KB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
