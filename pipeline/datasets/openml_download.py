"""Download one OpenML table to a Parquet file: a child process of `pipeline.datasets.openml`.

Usage: python -m pipeline.datasets.openml_download ID SERVER SECONDS FILE
It ends with its parent, after SECONDS, and when it would take more memory or disk than `LARGEST`.
On failure the last line of standard output is JSON with a ``problem``, a clause for the user.
"""

import contextlib
import errno
import json
import logging
import os
import signal
import sys
import warnings
from pathlib import Path

import pandas as pd

from pipeline import interrupts

RETRIES = 2
GRACE = 5.0  # seconds after which it ends by itself if it was not ended
LARGEST = 4 * 2**30  # bytes, of memory and of any file


def download(number: int, server: str, destination: Path) -> None:
    """Write the table; its ``attrs["target"]`` is OpenML's default target, or absent."""
    import openml

    logging.getLogger("openml").setLevel(logging.CRITICAL)
    openml.config.server = server
    openml.config.set_retry_policy("human", RETRIES)
    dataset = openml.datasets.get_dataset(
        number, download_data=True, download_qualities=False, download_features_meta_data=False
    )
    frame, *_ = dataset.get_data(dataset_format="dataframe")
    assert isinstance(frame, pd.DataFrame)  # what that format means
    if dataset.default_target_attribute:
        frame.attrs["target"] = dataset.default_target_attribute
    frame.to_parquet(destination)


def explain(error: Exception, server: str) -> str:
    """What went wrong, for somebody who does not know the client."""
    import requests
    from openml.exceptions import OpenMLHashException, OpenMLServerException

    if isinstance(error, MemoryError | OverflowError) or getattr(error, "errno", 0) == errno.EFBIG:
        return f"what {server} sends takes more than {LARGEST // 2**30} GB"
    if isinstance(error, OpenMLHashException):
        return "the download does not match the md5 checksum that the server announces"
    if isinstance(error, OpenMLServerException):
        if error.code == 111:
            return f"{server} knows no dataset with that number"
        return f"{server} answered with an error: {error.message}"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the download broke off before its end"
    if isinstance(error, requests.exceptions.ConnectionError):
        return f"{server} cannot be reached"
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def bound(seconds: float) -> None:
    """Limit this process in time, memory and disk, and to its parent's life."""
    interrupts.follow(os.getppid())
    try:
        import resource
    except ImportError:
        return  # not on this system
    used = _address_space()
    for limit, most in ((resource.RLIMIT_AS, used + LARGEST), (resource.RLIMIT_FSIZE, LARGEST)):
        with contextlib.suppress(ValueError, OSError):  # somebody else's limit may be lower
            resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error of the write instead
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)  # its default is to end the process


def _address_space() -> int:
    """What is mapped already, in bytes: mostly libraries."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 2**31


def main() -> int:
    """Run the download; exit status 1 with an explanation where it failed."""
    number, server, seconds, destination = sys.argv[1:]
    bound(float(seconds))
    warnings.simplefilter("ignore")
    try:
        download(int(number), server, Path(destination))
    except Exception as error:  # a child's whole purpose is to turn any failure into a clause
        print(json.dumps({"problem": explain(error, server)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
