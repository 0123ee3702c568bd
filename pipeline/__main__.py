"""``python -m pipeline``, and the console script."""

from pipeline import interrupts


def main() -> None:
    """Start the command line; Ctrl-C ends it from the first moment on."""
    interrupts.end_at_once()  # before the imports that take a second

    from pipeline.cli import main as start

    start()


if __name__ == "__main__":
    main()
