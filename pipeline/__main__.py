"""``python -m pipeline``."""

from pipeline import interrupts

if __name__ == "__main__":
    interrupts.end_at_once()  # before the imports that take a second

    from pipeline.cli import main

    main()
