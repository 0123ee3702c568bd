"""From a plan to stored runs.

- `plan`: the runs a command is about, composed once;
- `kinds`: what a run is, and how one is computed;
- `keys`, `store`, `provenance`: what its numbers depend on, where they are kept, what made them;
- `tasks`, `workers`, `grid`, `progress`: many of them, spread over processes or machines.
"""
