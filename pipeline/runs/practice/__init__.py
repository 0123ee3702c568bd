"""``stage=practice``: corrections of a model beside each other, judged on rows none has seen.

A run is a (dataset, situation, method, seed); a task is those of one (dataset, situation, seed),
which share the model that is corrected.
"""
