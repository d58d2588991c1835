"""The whole of options, figures, types and documents: nothing of the engine is missing, nothing is told that is not so."""

import ast
import doctest
import inspect
import os
import pathlib
import re

import pytest

import tamarack

PACKAGE = pathlib.Path(__file__).parent.parent
ENGINE = PACKAGE.parent / "tamarack" / "src"
README = (PACKAGE / "README.md").read_text()

#: For each option a value that is not its default, and what ``options()`` then tells.
OPTIONS = {
    "create_if_missing": (True, True), "error_if_exists": (True, True), "paranoid_checks": (True, True),
    "memory_max": (1 << 26, 1 << 26), "memtable_bytes": (65537, 65537), "memtables_max": (9, 9), "segment_bytes_max": (8192, 8192),
    "recovery_log_max": (1 << 28, 1 << 28), "max_space_amplification": (2.5, 2.5), "gc": ("tail", "tail"),
    "gc_bytes_per_second": (77, 77), "value_runs_max": (3, 3), "reserved_bytes": (0, 0), "log_mode": ("plain", "plain"),
    "inline_value_max": (99, 99), "value_codec": ("zstd", "zstd"), "block_codec": ("none", "none"),
    "block_bytes": (1024, 1024), "filter_bits_per_key": (3, 3), "table_bytes_max": (70000, 70000),
    "level_bytes_base": (80000, 80000), "block_cache_bytes": (90000, 90000),
    "row_cache_bytes": (92000, 92000), "direct_reads": (True, True), "relocation_cache_bytes": (91000, 91000), "open_files_max": (64, 64), "background_threads": (5, 5),
    "durability": ("machine", "machine"),
}

#: plyvel's options: the value passed, and what it comes to.
PLYVELS = [
    ("write_buffer_size", 100_000, "memtable_bytes", 100_000), ("write_buffer_size", 1, "memtable_bytes", 65536),
    ("write_buffer_size", 1 << 40, "memtable_bytes", 1 << 30), ("max_open_files", 10, "open_files_max", 74),
    ("max_open_files", 512, "open_files_max", 512), ("lru_cache_size", 12345, "block_cache_bytes", 12345),
    ("block_size", 2048, "block_bytes", 2048), ("block_size", 1 << 30, "block_bytes", 1 << 20),
    ("max_file_size", 5 << 20, "table_bytes_max", 5 << 20), ("max_file_size", 1, "table_bytes_max", 1 << 20),
    ("bloom_filter_bits", 7, "filter_bits_per_key", 7), ("bloom_filter_bits", 0, "filter_bits_per_key", 0),
    ("bloom_filter_bits", 99, "filter_bits_per_key", 32), ("bloom_filter_bits", None, "filter_bits_per_key", 10),
    ("compression", None, "value_codec", "none"), ("compression", "snappy", "value_codec", "lz4"),
    ("compression", b"snappy", "block_codec", "lz4"), ("compression", "zstd", "block_codec", "zstd"),
    ("paranoid_checks", None, "paranoid_checks", False), ("block_restart_interval", 32, "block_bytes", 4096),
]


def fields(file, structure):
    """The public fields of a structure of the engine's."""
    source = (ENGINE / file).read_text()
    body = re.search(rf"pub struct {structure} \{{(.*?)\n\}}", source, re.DOTALL).group(1)
    return set(re.findall(r"^    pub (\w+):", body, re.MULTILINE))


engine = pytest.mark.skipif(not ENGINE.exists(), reason="the engine's sources are not beside the package")


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_is_what_it_is_set_to(path, name):
    value, told = OPTIONS[name]
    if name != "create_if_missing":
        with tamarack.DB(path + "-default", create_if_missing=True) as db:
            assert db.options()[name] != told, "the value is the default"
            assert len(db.options()) == len(OPTIONS) + 2
    with tamarack.DB(path, **{"create_if_missing": True, name: value}) as db:
        options = db.options()
    assert options[name] == told
    others = {other: options[other] for other in OPTIONS if other not in (name, "create_if_missing")}
    with tamarack.DB(path + "-2", create_if_missing=True) as db:
        assert others == {other: db.options()[other] for other in others}


@pytest.mark.parametrize("name, value, means, told", PLYVELS)
def test_plyvels_options_mean_what_the_readme_says(path, name, value, means, told):
    with tamarack.DB(path, create_if_missing=True, **{name: value}) as db:
        assert db.options()[means] == told
        db.put(b"a", b"b" * 1000)
        assert db.get(b"a") == b"b" * 1000


def test_tamaracks_names_count_before_plyvels(path):
    with tamarack.DB(path, create_if_missing=True, value_codec="none", compression="zstd", block_bytes=512,
                     block_size=4096) as db:
        options = db.options()
    assert (options["value_codec"], options["block_codec"], options["block_bytes"]) == ("none", "zstd", 512)


def test_options_that_are_wrong_are_refused(path):
    for name, value, kind in [
        ("unknown", 1, TypeError), ("memtable_bytes", "1", TypeError), ("memtable_bytes", 1, ValueError),
        ("memtable_bytes", -1, OverflowError), ("gc", "never", ValueError), ("gc", 1, TypeError),
        ("compression", "gzip", ValueError), ("compression", 1, TypeError), ("create_if_missing", "yes", TypeError),
        ("write_buffer_size", "x", TypeError), ("block_restart_interval", "x", TypeError),
        ("durability", "none", ValueError), ("listener", 1, TypeError), ("read_only", 1, TypeError),
        ("bloom_filter_bits", -1, OverflowError),
    ]:
        with pytest.raises(kind, match=name if kind is ValueError else None):
            tamarack.DB(path, **{"create_if_missing": True, name: value})
        assert not pathlib.Path(path).exists()


@engine
def test_every_option_of_the_engine_can_be_set():
    names = fields("base/options.rs", "Options")
    assert len(names) > 20
    assert names - {"comparator", "listener", "read_only"} == set(OPTIONS) - {"durability"}
    taken = set(inspect.signature(tamarack.DB).parameters)
    assert names <= taken
    for name in taken - {"name"}:
        assert f"`{name}`" in README, name


@engine
def test_every_figure_of_the_engine_is_reported(db):
    for number in range(100):
        db.put(b"%d" % number, b"v" * 1000)
    db.compact_range()
    iterator, snapshot = db.iterator(), db.snapshot()
    db.get(b"1")
    stats = db.stats()
    assert set(stats) == fields("cube/stats.rs", "Stats")
    assert set(stats["block_cache"]) == set(stats["row_cache"]) == fields("cube/stats.rs", "CacheStats")
    assert set(stats["levels"][0]) == fields("cube/stats.rs", "LevelStats")
    assert set(stats["segments"][0]) == fields("cube/stats.rs", "SegmentStats") | {"file", "cold"}
    assert set(stats["readers"][0]) == fields("cube/readers.rs", "ReaderStats")
    assert stats["operations_written"] == 100 and stats["user_bytes_written"] == 100_190
    assert stats["snapshots"] == 1 and stats["warnings"] == [] and stats["oldest_snapshot_seconds"] >= 0
    assert set(db.recovery()) == fields("base/recovery.rs", "RecoveryReport")
    assert set(db.check()) == fields("cube/check.rs", "CheckReport") | {"clean"}
    assert set(db.gc()) == fields("base/gc.rs", "GcReport")
    assert iterator and snapshot


def test_properties_and_sizes(db):
    for name in (b"leveldb.stats", b"leveldb.sstables", b"leveldb.num-files-at-level0",
                 b"leveldb.approximate-memory-usage", b"tamarack.stats"):
        assert isinstance(db.get_property(name), bytes)
    assert db.get_property(b"leveldb.num-files-at-level9") is None
    assert db.get_property(b"\xff") is None
    db.update((b"%04d" % number, os.urandom(1000)) for number in range(1000))
    db.flush()
    whole, half, none = db.approximate_sizes((b"", b"\xff"), (b"0500", b"\xff"), (b"x", b"y"))
    assert 900_000 < whole < 1_200_000 and whole * 0.3 < half < whole * 0.8 and none < 10_000
    assert db.approximate_size(b"", b"\xff") == whole
    assert db.approximate_sizes() == []
    for wrong in (None, (1, 2), (b"a",)):
        with pytest.raises((TypeError, ValueError)):
            db.approximate_sizes(wrong)


def test_a_checkpoint_is_a_database(db, path):
    db.update((b"%d" % number, b"v" * 1000) for number in range(100))
    report = db.checkpoint(pathlib.Path(path + "-copy"))
    assert report["linked_files"] + report["copied_files"] > 0
    db.put(b"after", b"")
    with tamarack.DB(path + "-copy") as copy:
        assert len(list(copy)) == 100 and b"after" not in copy
    with pytest.raises(tamarack.InvalidArgumentError):
        db.checkpoint(path + "-copy")


def stubs():
    """The functions that the type stubs tell, by class (``None``: of the module)."""
    told = {}
    for node in ast.parse((PACKAGE / "python" / "tamarack" / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            told.setdefault(None, {})[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
            told[node.name] = methods | {
                item.target.id: item for item in node.body if isinstance(item, ast.AnnAssign)}
    return told


def parameters(node):
    positional = [argument.arg for argument in node.args.posonlyargs + node.args.args]
    return [name for name in positional if name not in ("self", "cls")], sorted(argument.arg for argument in node.args.kwonlyargs)


def test_the_stubs_tell_what_there_is():
    told = stubs()
    for name in tamarack.__all__ + ["IOError"]:
        if isinstance(getattr(tamarack, name), type):
            assert name in told, f"{name} is not in the stubs"
    assert set(told[None]) == {"destroy_db", "repair_db"}
    inherited = {"__class__", "__new__", "__doc__", "__module__", "__weakref__", "__reduce_ex__", "__repr__"}
    for name, methods in told.items():
        if name is None or issubclass(getattr(tamarack, name), Exception):
            continue
        kind = getattr(tamarack, name)
        there = {method for method in vars(kind) if method not in inherited}
        assert there == set(methods) - {"__new__"}, name
        for method, node in methods.items():
            attribute = kind if method == "__new__" else vars(kind)[method]
            public = not method.startswith("__")
            assert not public or inspect.getdoc(attribute), f"{name}.{method} has no docstring"
            if not isinstance(node, ast.FunctionDef) or not (public or method == "__new__"):
                continue
            if any(getattr(mark, "id", "") == "property" for mark in node.decorator_list):
                assert inspect.isgetsetdescriptor(attribute), f"{name}.{method}"
                continue
            signature = inspect.signature(attribute).parameters.values()
            takes = [p.name for p in signature if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"]
            only = sorted(p.name for p in signature if p.kind is p.KEYWORD_ONLY)
            assert (takes, only) == parameters(node), f"{name}.{method}"


def test_the_package_is_typed_and_versioned():
    assert (pathlib.Path(tamarack.__file__).parent / "py.typed").exists()
    assert (pathlib.Path(tamarack.__file__).parent / "__init__.pyi").exists()
    assert re.fullmatch(r"\d+\.\d+\.\d+", tamarack.__version__)
    assert tamarack.__leveldb_version__ == "1.23"
    assert all(hasattr(tamarack, name) for name in tamarack.__all__)


def test_the_readme_tells_every_function():
    for kind in (tamarack.DB, tamarack.WriteBatch, tamarack.Iterator, tamarack.RawIterator, tamarack.Snapshot):
        for name in vars(kind):
            if not name.startswith("_"):
                assert re.search(rf"`[^`]*\b{name}\b[^`]*`", README), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("text", [README, tamarack.__doc__, tamarack.DB.__doc__], ids=["readme", "package", "DB"])
def test_examples_give_what_they_say(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(text, {"tamarack": tamarack}, "example", None, 0)
    assert examples.examples
    runner = doctest.DocTestRunner()
    runner.run(examples)
    assert runner.failures == 0
