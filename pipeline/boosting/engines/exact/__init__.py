"""``engine="exact"``: scikit-learn's gradient-boosted trees from a compiled kernel.

- `columns`: how a training matrix is laid out, once, and a round's f added to it;
- `kernel`: how trees are grown on that layout, and why the result is exact;
- `engine`: both with the interface of an engine; `forest`: a random forest.
"""

from .engine import ExactEngine, ExactEnsemble

__all__ = ["ExactEngine", "ExactEnsemble"]
