"""An attack on the pipeline: signals, touched stores, bad tables, hostile servers, and more.

Nothing may hang, end in a traceback, leave processes behind, lose what was stored or give other
numbers. Each module holds one kind of attack; ``python -m scripts.attack`` runs them and prints a
table.
"""
