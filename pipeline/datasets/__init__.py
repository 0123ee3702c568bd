"""From a dataset's name to canonical table, design matrix and splits.

- `manifest`, `canonical`: what the paper's tables are, and the one form that every table takes;
- `sources`, `openml`: where tables come from;
- `design`: a table as (X, y), and its splits;
- `library`: each table and design of a command, made once.
"""
