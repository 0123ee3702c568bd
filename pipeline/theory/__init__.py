"""The paper's theory as something to run: exact dynamics, and every statement as a finding.

In the order in which they build on each other:

- `learners`: weak-learner classes B(f) and projectors on their span;
- `dynamics`, `logloss`: runs f_{t+1} = w_t (f_t + η h_t), the oracle exact or of known error;
- `instances`, `rows`: random problems and rows of the datasets to try statements on;
- `trials`: the runs that several statements are tried on;
- `checks`: a measured value beside its bound;
- `statements` (and statements.yaml): the words of every statement, and of what is wrong;
- `verdicts`: how checks give a verdict, and the registry of statements;
- `constructions`: two that statements of ours need;
- `findings`: a module per theorem with its checks, counterexamples and statements;
- ``proofs/``: of what is ours, in LaTeX;
- `curves`, `study`: what ``stage=theory`` measures and writes;  `figures` draws it.
"""
