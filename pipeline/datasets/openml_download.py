"""Download one OpenML table to a Parquet file: a child process of `pipeline.datasets.openml`.

Usage: python -m pipeline.datasets.openml_download ID SERVER FILE
On failure the last line of standard output is JSON with a ``problem``, a clause for the user.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from pathlib import Path

import pandas as pd

RETRIES = 2


def download(number: int, server: str, destination: Path) -> None:
    """Write the table; its ``attrs["target"]`` is OpenML's default target, or absent."""
    import openml

    logging.getLogger("openml").setLevel(logging.CRITICAL)
    openml.config.server = server
    openml.config.set_retry_policy("human", RETRIES)
    dataset = openml.datasets.get_dataset(
        number,
        download_data=True,
        download_qualities=False,
        download_features_meta_data=False,
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


def main() -> int:
    """Run the download; exit status 1 with an explanation where it failed."""
    number, server, destination = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    warnings.simplefilter("ignore")
    try:
        download(number, server, destination)
    except Exception as error:  # a child's whole purpose is to turn any failure into a clause
        print(json.dumps({"problem": explain(error, server)}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
