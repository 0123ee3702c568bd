"""Parts of docstrings that several public items share, each written once.

A line of a docstring that is nothing but a name in braces, such as ``{ax}``, stands for the text of
that name; `described` puts the text there.
"""

import re
from textwrap import indent
from typing import TypeVar

T = TypeVar("T")

TEXTS = {
    "rounds": """\
n_rounds : int, default=100
    The largest number of rounds; 0 leaves the initial predictor as it is. The paper has 20.
eta : float, default=1.0
    Step size η in (0, 1].""",
    "feedback": """\
feedback : {"honest", "in_sample", "initial", "none"}, default="honest"
    The trees' feature besides X: f_t of the trajectory of the row's own fold, which has not
    seen its y; f_t of the trajectory that the trees belong to, which has (the paper); f_0; or
    none.""",
    "trees": """\
init_cv : None, "prefit", "oob", int or splitter, default=5
    How training rows get their f_0. An int or splitter: from clones of ``init`` fitted to the
    other folds; new rows get it from a clone fitted to all rows. "oob": from the out-of-bag
    predictions of a forest. "prefit": ``init`` is fitted already, to other rows, and used as it
    is (inside of `cross_val_score` and the like, wrap it in scikit-learn's FrozenEstimator).
    None: from ``init`` fitted to them, as in the paper.
n_trees : int, default=10
    The number of trees of a round. The paper has 100.
max_leaf_nodes : int or None, default=31
    The largest number of leaves of a tree; None if ``max_depth`` alone limits it.
max_depth : int or None, default=None
    The largest depth of a tree. The paper has 3.
learning_rate : float, default=0.2
    The factor of each tree in its ensemble.
min_samples_leaf : int, default=20
    The smallest number of rows of a leaf.""",
    "keeping": """\
subsample : float, default=1.0
    The share of the rows that each tree is fitted to.
max_features : float, default=1.0
    The share of the features, including f, that each split chooses from.
early_stopping : bool, default=True
    Whether rows held out decide what is kept; False keeps all ``n_rounds``, and fits them to
    all rows unless the feedback is honest.
stack : bool, default=True
    Whether two further kinds of trees take part: a new model, which starts from a constant and
    is not given f, and trees of depth 2. The shares of all three are those that are best on
    rows held out. It takes three to six times as long. Needs ``scoring="loss"``.
cv : int or splitter, default=5
    The folds; a splitter must hold out every row once.
scoring : "loss", "mce", str or scorer, default="loss"
    What the number of rounds is chosen by: the loss, the multicalibration error, or any of
    scikit-learn's scorers. With "loss", the share 1 − (0.7 SE / gain)² of the correction is
    kept, SE being the standard error of its gain on rows held out.
n_iter_no_change : int, default=5
    The number of rounds without an improvement after which no more are tried.
engine : str, default="lightgbm"
    What fits the trees: LightGBM's histograms, with missing cells and categories left to
    LightGBM ("lightgbm_lossless" has a bin for every value, and indicators); or "exact", a
    compiled kernel made for the paper's sizes, and "sklearn", scikit-learn itself, which grow
    the same trees of a ``max_depth``, without ``max_leaf_nodes`` and ``l2_regularization``. Not
    trees, but smooth functions of (x, f) are "linear", "cosines" (``n_trees`` of them) and
    "soft_trees".
n_jobs : int or None, default=None
    The number of folds that are fitted at once, and of threads of the initial forest: as in
    scikit-learn, but at most one per core. The result does not depend on it.
random_state : int, RandomState or None, default=None
    The seed of the initial forest, folds, samples and ties between equally good splits.
verbose : int, default=0
    1 shows a progress bar, 2 prints a line for each round.""",
    "fitted": """\
best_round_ : int
    The number of rounds that `predict` uses.
gain_ : Gain or None
    By how much the correction lowers the loss of rows held out, with its standard error and the
    ``share`` that is kept; None without early stopping by the loss.
validation_scores_ : ndarray
    The scores of f_0, f_1, … on rows held out (higher is better).
trajectories_ : tuple of Trajectory
    What is kept: the rounds of each trajectory and its share of the correction.
weights_, gaps_, losses_ : ndarray
    w_t, the norms ‖f_{t+1} − f_t‖₂ and the mean losses of f_0, f_1, … on the rows that
    a trajectory was fitted to; means over the trajectories.
init_ : estimator or None
    The fitted initial predictor, or None if `fit` was given initial predictions.
feature_importances_, f_importance_ : ndarray, float
    Shares of the splits' gain.
encoding_ : Encoding
    How the columns of X become those of the trees.
n_features_in_, feature_names_in_ : int, ndarray
    As everywhere in scikit-learn.""",
    "predicted": """\
X : table or array of shape (n, d)
    Rows, with the columns of the training table.
initial_prediction : array of shape (n,) or (n, classes), optional
    What the model that is corrected predicts for them (of a classifier, probabilities); if, and
    only if, `fit` was given such.
n_rounds : int, optional
    The last round T; `best_round_` by default.""",
    "held_out": """\
X : table or array of shape (n, d)
    Rows that the model was not fitted to.
y : array of shape (n,)
    Their outcomes.""",
    "plotted": """\
ax : matplotlib axes, optional
    Where to plot; a new figure by default.

Returns
-------
self
    With ``ax_`` and ``figure_``.""",
    "audited": """\
y : array of shape (n,)
    The outcomes.
prediction : array of shape (n,)
    The predictions.
sample_weight : array of shape (n,), optional
    The weights of the rows.""",
    "audit_trees": """\
n_trees : int, default=100
    The number of random trees.
depth : int, default=3
    Their depth.""",
    "assessment": """\
n : int
    The number of rows.
mce : float
    The plug-in multicalibration error over random trees.
floor : float
    The error that a perfect predictor with these squared residuals would have.
debiased_square : float
    Unbiased for the squared error; ``debiased`` is its root, with its sign. It may be negative.
standard_error : float
    The standard error of the debiased square.
p_value : float
    Of the hypothesis that there is no miscalibration; one test on all rows, adjusted for
    nothing.
leaves : Leaves
    The sums over the leaves of the trees.""",
}


def described(item: T) -> T:
    """Put the texts in the place of their names: in a docstring and, of a class, its methods'."""
    for one in [item, *(vars(item).values() if isinstance(item, type) else ())]:
        function = getattr(one, "__func__", one)  # of a class method
        if callable(function) and function.__doc__:
            function.__doc__ = re.sub(
                r"^( *)\{(\w+)\}$",
                lambda m: indent(TEXTS[m[2]], m[1]),
                function.__doc__,
                flags=re.MULTILINE,
            )
    return item
