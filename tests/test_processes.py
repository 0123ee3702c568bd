"""Work in forked processes."""

import os
from functools import partial

import pytest

from pipeline import processes
from pipeline.processes import forked


def nested(number):
    """Forks in a forked process, which is then given other work."""
    inner = forked([partial(pow, number, k) for k in (1, 2, 3)])
    return number, inner, os.getpid()


def test_results_come_in_order_also_of_work_that_forks_itself(monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 2)
    found = forked([partial(nested, k) for k in range(12)])
    assert [(k, inner) for k, inner, _ in found] == [(k, [k, k**2, k**3]) for k in range(12)]
    assert os.getpid() not in {pid for _, _, pid in found}


def test_one_core_does_the_work_itself(monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)
    assert forked([os.getpid, os.getpid]) == [os.getpid()] * 2


def test_an_error_is_that_of_the_work(monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        forked([partial(divmod, 1, 1), partial(divmod, 1, 0)])
