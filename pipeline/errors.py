"""Errors a user can act on: one sentence each, shown without a traceback."""


class UserError(Exception):
    """Something the user can mend; ``str(error)`` is the whole message."""

    exit_status = 1


class ConfigError(UserError):
    """The configuration asks for something that is not allowed; nothing was run or written."""

    exit_status = 2


class DataError(UserError):
    """A table could not be had, or is not what it should be."""
