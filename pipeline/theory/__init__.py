"""The paper's theory as something to run: exact dynamics, and every statement as a check.

- `learners`: weak-learner classes B(f) and projectors on their span;
- `dynamics`: f_{t+1} = w_t (f_t + η h_t) with an exact oracle or one of known error;
- `statements`: each theorem, lemma and identity as measured value, bound and slack;
- `counterexamples`: small instances on which a statement fails as stated, or a rate is attained.
"""
