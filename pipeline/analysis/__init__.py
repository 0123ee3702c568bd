"""From stored runs to what they say: curves, verdicts on the paper's claims, Table 1, figures."""
