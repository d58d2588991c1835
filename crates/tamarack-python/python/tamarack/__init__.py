"""Tamarack: an embedded key-value store for SSDs, with plyvel's interface.

>>> import tamarack
>>> with tamarack.DB("fruit.db", create_if_missing=True) as db:
...     db.put(b"apple", b"green")
...     with db.write_batch() as batch:
...         batch.put(b"banana", b"yellow")
...         batch.delete(b"cherry")
...     for key, value in db.iterator(prefix=b"b"):
...         print(key, value)
b'banana' b'yellow'

``help(tamarack.DB)`` says what a database does.
"""

from ._errors import (
    ClosedError,
    ComparatorError,
    CorruptionError,
    Error,
    ForkError,
    InvalidArgumentError,
    IOError,
    IteratorInvalidError,
    LockedError,
    NoSpaceError,
    ReadOnlyError,
    UnsupportedError,
)
from ._tamarack import (
    DB,
    Iterator,
    PrefixedDB,
    RawIterator,
    Snapshot,
    WriteBatch,
    __version__,
    destroy_db,
    repair_db,
)

#: The version of LevelDB whose interface this is, as in plyvel.
__leveldb_version__ = "1.23"

# ``IOError`` is not among them: ``from tamarack import *`` must not hide Python's.
__all__ = [
    "DB",
    "ClosedError",
    "ComparatorError",
    "CorruptionError",
    "Error",
    "ForkError",
    "InvalidArgumentError",
    "Iterator",
    "IteratorInvalidError",
    "LockedError",
    "NoSpaceError",
    "PrefixedDB",
    "RawIterator",
    "ReadOnlyError",
    "Snapshot",
    "UnsupportedError",
    "WriteBatch",
    "__leveldb_version__",
    "__version__",
    "destroy_db",
    "repair_db",
]
