"""Other methods that correct a model's predictions, each from its paper, with one interface.

A method is a frozen dataclass of its options with ``fit(sample, validation, seed)``; see `Method`.
"""

from . import algorithm, auditors, level_sets, mcgrad, one_shot, patching, recalibration, trees  # noqa: F401  # which makes their methods known
from .base import Corrected, Method, Sample

METHODS: dict[str, type[Method]] = {method.name: method for method in Method.__subclasses__()}

__all__ = ["METHODS", "Corrected", "Method", "Sample"]
