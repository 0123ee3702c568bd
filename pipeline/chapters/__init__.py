"""The chapters of the report, a folder each: what it needs, measures, judges, draws and says.

A chapter's package has a ``CHAPTER`` (see `base`), a template ``chapter.html`` and the words of its
figures, ``captions.yaml``. A new one is a new folder, and an experiment that names it in
``experiment.chapters`` if it needs runs of its own.
"""

import pkgutil
from importlib import import_module

from pipeline.chapters.base import PARTS, Chapter
from pipeline.errors import ConfigError


def chapters() -> list[Chapter]:
    """All chapters, in the order of the page."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]
    found = [getattr(import_module(f"{__name__}.{name}"), "CHAPTER", None) for name in names]
    known = (c for c in found if c is not None)
    return sorted(known, key=lambda c: (PARTS.index(c.part), c.order))


def chapter_named(name: str) -> Chapter:
    """A chapter by the name of its folder."""
    known = {chapter.name: chapter for chapter in chapters()}
    if name not in known:
        raise ConfigError(f"experiment.chapters: {name}: must be one of {', '.join(sorted(known))}")
    return known[name]
