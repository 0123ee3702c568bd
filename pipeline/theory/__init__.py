"""The paper's theory as something to run: exact dynamics, and every statement as a finding.

- `learners`: weak-learner classes B(f) and projectors on their span;
- `dynamics`: f_{t+1} = w_t (f_t + η h_t) with an exact oracle or one of known error;
- `instances`, `rows`, `trials`: problems to try statements on, and the runs they share;
- `checks`: a measured value beside its bound, a module per theorem;
- `counterexamples`: small instances on which a statement fails as stated, or a rate is attained;
- `findings`: a statement, its checks, and the verdict that follows from them;
- `errata`: the points that need mending;  `proofs`: of what is ours, in LaTeX;
- `products`: products of finitely many projections;
- `curves`, `income`, `study`: what ``stage=theory`` measures and writes;
- `figures`: pictures of that.
"""
