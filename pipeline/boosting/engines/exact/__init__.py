"""``engine="exact"``: scikit-learn's gradient-boosted trees from a compiled kernel.

- `columns`: how the features of a split are laid out, once per split;
- `kernel`: how 100 trees are grown on that layout, and why the result is exact;
- `engine`: the two behind the engine interface.
"""

from pipeline.boosting.engines.exact.engine import ExactEngine, ExactEnsemble

__all__ = ["ExactEngine", "ExactEnsemble"]
