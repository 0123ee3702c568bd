"""What the runs of ``stage=practice`` say: effects, ranks, settings, statements, figures."""
