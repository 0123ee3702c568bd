"""What each ``stage=`` does: one file each, ``main(plan)`` from top to bottom."""
