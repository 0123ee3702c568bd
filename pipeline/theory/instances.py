"""Where statements are tried: random problems of several kinds, and rows of the datasets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.boosting.arrays import Floats
from pipeline.theory.learners import Factorised, bins, linear, rbf, sigmoid, soft_tree

N_INSTANCES = 40  # per class of learners
SMOOTH = ("rbf", "sigmoid", "linear", "soft tree")
KINDS = (*SMOOTH, "hard bins")


@dataclass(frozen=True)
class Instance:
    """A random problem: targets, start and a class of weak learners."""

    kind: str
    y: Floats
    f0: Floats
    learners: Factorised
    eta: float
    seed: int

    def generator(self) -> np.random.Generator:
        """Random numbers for what a statement needs beside the instance, always the same."""
        return np.random.default_rng([KINDS.index(self.kind), self.seed, 1])


def instance(kind: str, seed: int) -> Instance:
    """The random instance of a kind and a seed; 15 to 40 points."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n = int(rng.integers(15, 41))
    X = rng.normal(size=(n, 3))
    y = rng.uniform(0.5, 3) * rng.normal(size=n) + rng.normal()
    learners = learners_of(kind, X, 0.0, 1.0)
    return Instance(kind, y, rng.normal(size=n), learners, float(rng.uniform(0.05, 1.0)), seed)


def learners_of(kind: str, X: Floats, centre: float, width: float) -> Factorised:
    """A class of weak learners on the first two columns of X, for predictions centre ± width."""
    H = np.column_stack([np.ones(len(X)), X[:, :2]])

    def at(*places: float) -> Floats:
        return centre + width * np.array(places)

    tree = soft_tree(X, np.array([0.0, 0.2]), 0.5)
    return {
        "rbf": lambda: rbf(H, at(-1, 1), width),
        "sigmoid": lambda: sigmoid(H, at(-0.5, 0.5), 0.7 * width),
        "linear": lambda: linear(H),
        "soft tree": lambda: sigmoid(tree, at(0), 0.6 * width),
        "hard bins": lambda: bins(H, at(-1, 0, 1)),
    }[kind]()


@dataclass(frozen=True)
class Bank:
    """Where statements are tried: ``n`` random instances of each kind, and real ones."""

    n: int = N_INSTANCES
    real: Sequence[Instance] = ()

    def __call__(self, kinds: Sequence[str] = KINDS, times: int = 1) -> Iterator[Instance]:
        """The instances of some kinds, ``times`` as many random ones; always the same."""
        yield from self.random(kinds, times * self.n)
        yield from (i for i in self.real if i.kind in kinds)

    def few(self, kinds: Sequence[str] = KINDS) -> Iterator[Instance]:
        """Some random instances, for long runs."""
        return self.random(kinds, max(self.n // 5, 2))

    def random(self, kinds: Sequence[str], n: int) -> Iterator[Instance]:
        """``n`` random instances of each of some kinds."""
        return (instance(kind, seed) for kind in kinds for seed in range(n))
