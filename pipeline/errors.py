"""Errors a user can act on: one sentence each, shown without a traceback."""


class UserError(Exception):
    """Something the user can mend; ``str(error)`` is the whole message."""

    exit_status = 1


class ConfigError(UserError):
    """The configuration asks for something that is not allowed; nothing was run or written."""

    exit_status = 2


class Interrupted(UserError):  # noqa: N818
    """The user stopped the work; what was finished is stored."""

    exit_status = 130


class DataError(UserError):
    """A table could not be had, or is not what it should be."""
