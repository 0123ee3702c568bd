"""The paper's figures and further ones, from stored runs."""

from pipeline.analysis import portable
from pipeline.analysis.paper import LOWEST_R2
from pipeline.chapters.base import Chapter, Context, Section
from pipeline.chapters.figures.draw import FIGURES, draw_all
from pipeline.report.place import command_of

ELSEWHERE = ("debiased",)  # shown by the noise chapter


class Figures(Chapter):
    """What the runs look like over rounds."""

    title = "The paper's figures"
    part = "Did it replicate?"
    order = 20
    curated = {
        f"paper/figures/{name}.{kind}": f"figures/{name}.{kind}"
        for name in FIGURES
        for kind in ("png", "pdf", "csv")
    }

    def section(self, context: Context) -> Section:
        folder = context.folder / "figures"
        names = [name for name in FIGURES if name not in ELSEWHERE]
        draw_all(context.evidence, folder, names)
        source = context.folder / portable.FILE
        pictures = [
            self.picture(
                folder / f"{name}.png",
                linked=True,
                again=command_of([f"figures.source={source}", f"figures.only=[{name}]"], "figures"),
                lowest_r2=LOWEST_R2,
            )
            for name in names
        ]
        title = None if context.scope.is_replication else "Gaps and errors over rounds"
        return Section(figures=pictures, title=title)


CHAPTER = Figures()
