"""Types of the package. What each function does is in its docstring: ``help(tamarack.DB)``."""

import builtins
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeAlias, TypeVar, final, overload

if sys.version_info >= (3, 12):
    from collections.abc import Buffer
else:
    from typing_extensions import Buffer

_Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_Codec: TypeAlias = Literal["none", "lz4", "zstd"]
_Compression: TypeAlias = Literal["snappy", "lz4", "zstd", "none"]
_Level: TypeAlias = Literal["structure", "checksums", "liveness", "values"]
_Default = TypeVar("_Default")
_Item = TypeVar("_Item", covariant=True)

__version__: Final[str]
__leveldb_version__: Final[str]
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

class Error(Exception): ...
class InvalidArgumentError(Error, ValueError): ...
class IOError(Error, builtins.IOError): ...
class LockedError(IOError): ...
class ReadOnlyError(IOError): ...
class NoSpaceError(IOError): ...

class CorruptionError(Error):
    file: str | None
    offset: int | None
    expected: str | None
    found: str | None

class UnsupportedError(Error): ...
class ClosedError(Error, RuntimeError): ...
class ForkError(Error, RuntimeError): ...
class IteratorInvalidError(Error): ...
class ComparatorError(Error): ...

@final
class DB:
    def __new__(
        cls,
        name: _Path,
        *,
        create_if_missing: bool = False,
        error_if_exists: bool = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: _Compression | None = "snappy",
        bloom_filter_bits: int | None = None,
        comparator: Callable[[bytes, bytes], float] | None = None,
        comparator_name: bytes | str | None = None,
        read_only: bool | None = None,
        durability: Literal["process", "machine"] = "process",
        memory_max: int | None = None,
        memtable_bytes: int | None = None,
        memtables_max: int | None = None,
        segment_bytes_max: int | None = None,
        recovery_log_max: int | None = None,
        max_space_amplification: float | None = None,
        gc: Literal["cost-benefit", "tail", "off"] | None = None,
        gc_bytes_per_second: int | None = None,
        value_runs_max: int | None = None,
        reserved_bytes: int | None = None,
        log_mode: Literal["auto", "mapped", "plain"] | None = None,
        inline_value_max: int | None = None,
        value_codec: _Codec | None = None,
        block_codec: _Codec | None = None,
        block_bytes: int | None = None,
        filter_bits_per_key: int | None = None,
        table_bytes_max: int | None = None,
        level_bytes_base: int | None = None,
        block_cache_bytes: int | None = None,
        row_cache_bytes: int | None = None,
        direct_reads: bool | None = None,
        relocation_cache_bytes: int | None = None,
        open_files_max: int | None = None,
        background_threads: int | None = None,
        listener: Callable[[dict[str, Any]], object] | None = None,
    ) -> Self: ...
    @property
    def name(self) -> Any: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> bytes | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: _Default,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> bytes | _Default: ...
    def get_into(
        self,
        key: Buffer,
        buffer: Buffer,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> int | None: ...
    def multi_get(
        self,
        keys: Iterable[Buffer],
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> list[bytes | None]: ...
    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def put(self, key: Buffer, value: Buffer, *, sync: bool | None = None) -> None: ...
    def delete(self, key: Buffer, *, sync: bool | None = None) -> None: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def update(
        self,
        other: Mapping[Any, Buffer] | Iterable[tuple[Buffer, Buffer]],
        *,
        sync: bool | None = None,
    ) -> None: ...
    def write_batch(self, *, transaction: bool = False, sync: bool | None = None) -> WriteBatch: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[False],
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[None]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[Any]: ...
    def keys(self) -> Iterator[bytes]: ...
    def values(self) -> Iterator[bytes]: ...
    def items(self) -> Iterator[tuple[bytes, bytes]]: ...
    def raw_iterator(
        self, *, verify_checksums: bool | None = True, fill_cache: bool | None = True
    ) -> RawIterator: ...
    def snapshot(self, *, name: str | None = None) -> Snapshot: ...
    def prefixed_db(self, prefix: Buffer) -> PrefixedDB: ...
    def get_property(self, name: Buffer) -> bytes | None: ...
    def approximate_size(self, start: Buffer, stop: Buffer) -> int: ...
    def approximate_sizes(self, *ranges: tuple[Buffer, Buffer]) -> list[int]: ...
    def compact_range(self, *, start: Buffer | None = None, stop: Buffer | None = None) -> None: ...
    def gc(self, *, until: float | None = None) -> dict[str, int]: ...
    def pause_gc(self) -> None: ...
    def resume_gc(self) -> None: ...
    def set_gc_bytes_per_second(self, bytes: int) -> None: ...
    def sort_values(self) -> None: ...
    def checkpoint(self, path: _Path) -> dict[str, int]: ...
    def sync(self) -> None: ...
    def flush(self) -> None: ...
    def wait_idle(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def recovery(self) -> dict[str, Any]: ...
    def check(self, level: _Level | None = None) -> dict[str, Any]: ...
    def options(self) -> dict[str, Any]: ...

@final
class PrefixedDB:
    @property
    def db(self) -> DB: ...
    @property
    def prefix(self) -> bytes: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> bytes | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: _Default,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> bytes | _Default: ...
    def get_into(
        self,
        key: Buffer,
        buffer: Buffer,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> int | None: ...
    def multi_get(
        self,
        keys: Iterable[Buffer],
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> list[bytes | None]: ...
    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    def put(self, key: Buffer, value: Buffer, *, sync: bool | None = None) -> None: ...
    def delete(self, key: Buffer, *, sync: bool | None = None) -> None: ...
    def __setitem__(self, key: Buffer, value: Buffer, /) -> None: ...
    def __delitem__(self, key: Buffer, /) -> None: ...
    def update(
        self,
        other: Mapping[Any, Buffer] | Iterable[tuple[Buffer, Buffer]],
        *,
        sync: bool | None = None,
    ) -> None: ...
    def write_batch(self, *, transaction: bool = False, sync: bool | None = None) -> WriteBatch: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[False],
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[None]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[Any]: ...
    def keys(self) -> Iterator[bytes]: ...
    def values(self) -> Iterator[bytes]: ...
    def items(self) -> Iterator[tuple[bytes, bytes]]: ...
    def snapshot(self, *, name: str | None = None) -> Snapshot: ...
    def prefixed_db(self, prefix: Buffer) -> PrefixedDB: ...

@final
class Snapshot:
    @property
    def name(self) -> str | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> bytes | None: ...
    @overload
    def get(
        self,
        key: Buffer,
        default: _Default,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> bytes | _Default: ...
    def get_into(
        self,
        key: Buffer,
        buffer: Buffer,
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> int | None: ...
    def multi_get(
        self,
        keys: Iterable[Buffer],
        *,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> list[bytes | None]: ...
    def __getitem__(self, key: Buffer, /) -> bytes: ...
    def __contains__(self, key: Buffer, /) -> bool: ...
    def __iter__(self) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[tuple[bytes, bytes]]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[True] = True,
        include_value: Literal[False],
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[True] = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[bytes]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: Literal[False],
        include_value: Literal[False],
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[None]: ...
    @overload
    def iterator(
        self,
        *,
        reverse: bool = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: Buffer | None = None,
        include_key: bool = True,
        include_value: bool = True,
        expected_entries: int | None = None,
        verify_checksums: bool | None = True,
        fill_cache: bool | None = True,
    ) -> Iterator[Any]: ...
    def keys(self) -> Iterator[bytes]: ...
    def values(self) -> Iterator[bytes]: ...
    def items(self) -> Iterator[tuple[bytes, bytes]]: ...
    def raw_iterator(
        self, *, verify_checksums: bool | None = True, fill_cache: bool | None = True
    ) -> RawIterator: ...
    def close(self) -> None: ...
    def release(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...

@final
class WriteBatch:
    def put(self, key: Buffer, value: Buffer) -> None: ...
    def delete(self, key: Buffer) -> None: ...
    def clear(self) -> None: ...
    def append(self, source: WriteBatch) -> None: ...
    def approximate_size(self) -> int: ...
    def write(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> None: ...

@final
class Iterator(Generic[_Item]):
    def __iter__(self) -> Self: ...
    def __next__(self) -> _Item: ...
    def next(self) -> _Item: ...
    def prev(self) -> _Item: ...
    def seek(self, target: Buffer) -> None: ...
    def seek_to_start(self) -> None: ...
    def seek_to_stop(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...

@final
class RawIterator:
    def valid(self) -> bool: ...
    def seek_to_first(self) -> None: ...
    def seek_to_last(self) -> None: ...
    def seek(self, target: Buffer) -> None: ...
    def next(self) -> None: ...
    def prev(self) -> None: ...
    def key(self) -> bytes: ...
    def value(self) -> bytes: ...
    def item(self) -> tuple[bytes, bytes]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...

def destroy_db(name: _Path) -> None: ...
def repair_db(
    name: _Path,
    *,
    dry_run: bool = False,
    paranoid_checks: bool | None = None,
    write_buffer_size: int | None = None,
    max_open_files: int | None = None,
    lru_cache_size: int | None = None,
    block_size: int | None = None,
    block_restart_interval: int | None = None,
    max_file_size: int | None = None,
    compression: _Compression | None = "snappy",
    bloom_filter_bits: int | None = None,
    comparator: Callable[[bytes, bytes], float] | None = None,
    comparator_name: bytes | str | None = None,
    **options: Any,
) -> dict[str, Any]: ...
