"""From a plan to stored runs.

- `plan`: the runs a command is about, composed once;
- `run`: one of them, computed;
- `keys`, `store`, `provenance`: what its numbers depend on, where they are kept, what made them;
- `tasks`, `workers`, `grid`, `progress`: many of them, spread over processes or machines.
"""
