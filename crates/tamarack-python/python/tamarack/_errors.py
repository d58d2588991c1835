"""The exceptions of the package, one for each kind of error of the engine."""

import builtins


class Error(Exception):
    """Something failed; the subclass says what can be done about it."""


class InvalidArgumentError(Error, ValueError):
    """The request itself is wrong, and nothing was done: correct it."""


class IOError(Error, builtins.IOError):
    """The operating system failed a call; the message names it and the file.

    Reads may be tried again. A write that failed so is in doubt until the
    database is opened again. ``errno`` is set if it is known.
    """


class LockedError(IOError):
    """Another process, or another ``DB`` of this one, has the database open."""


class ReadOnlyError(IOError):
    """The database was opened read-only, or an earlier failure made it so.

    In the second case the message says which, and opening the database again
    recovers everything acknowledged.
    """


class NoSpaceError(IOError):
    """No space is left; nothing acknowledged was lost. Delete data, or free space."""


class CorruptionError(Error):
    """Bytes on disk are not what was written.

    The rest of the data stays readable, and nothing was deleted. Restore the
    file, or close the database and save what is whole with ``repair_db``.
    """

    #: The damaged file.
    file = None
    #: Where in it the damaged structure begins, in bytes.
    offset = None
    #: What a whole file holds there.
    expected = None
    #: What this file holds there.
    found = None


class UnsupportedError(Error):
    """Written by a version of the format that this build does not read."""


class ClosedError(Error, RuntimeError):
    """The database, or what was used of it, is closed."""


class ForkError(Error, RuntimeError):
    """The database was opened by the process that this one was forked from."""


class IteratorInvalidError(Error):
    """A raw iterator was looked at, or moved, that stands nowhere."""


class ComparatorError(Error):
    """The comparator raised an exception, which is the ``__cause__``.

    Keys cannot be found without it: close the database.
    """


# Users see, and pickle, them under the names that they import.
for _class in list(globals().values()):
    if isinstance(_class, type) and issubclass(_class, Error):
        _class.__module__ = "tamarack"
del _class
