"""Every kind of error is an exception of its own; what cannot be pickled says so."""

import copy
import os
import pathlib
import pickle
import subprocess
import sys

import pytest

import tamarack


def test_kinds_are_classes_that_plyvels_programs_catch():
    for kind in (tamarack.InvalidArgumentError, tamarack.IOError, tamarack.CorruptionError, tamarack.LockedError,
                 tamarack.ReadOnlyError, tamarack.NoSpaceError, tamarack.UnsupportedError, tamarack.ClosedError,
                 tamarack.ForkError, tamarack.IteratorInvalidError, tamarack.ComparatorError):
        assert issubclass(kind, tamarack.Error) and kind.__doc__ and kind.__module__ == "tamarack"
    for kind in (tamarack.LockedError, tamarack.ReadOnlyError, tamarack.NoSpaceError):
        assert issubclass(kind, tamarack.IOError) and issubclass(kind, OSError)
    assert issubclass(tamarack.ClosedError, RuntimeError) and issubclass(tamarack.ForkError, RuntimeError)
    assert issubclass(tamarack.InvalidArgumentError, ValueError)


def test_what_is_missing_or_there_already(path):
    with pytest.raises(tamarack.InvalidArgumentError, match="does not exist"):
        tamarack.DB(path)
    tamarack.DB(path, create_if_missing=True).close()
    with pytest.raises(tamarack.InvalidArgumentError, match="exists"):
        tamarack.DB(path, error_if_exists=True)


def test_an_open_database_is_locked(path, db):
    for call in (lambda: tamarack.DB(path), lambda: tamarack.destroy_db(path), lambda: tamarack.repair_db(path)):
        with pytest.raises(tamarack.LockedError):
            call()
    program = f"import tamarack\ntry: tamarack.DB({path!r})\nexcept tamarack.LockedError: print('locked')"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).stdout == b"locked\n"


def test_a_read_only_database_is_not_written(path):
    with tamarack.DB(path, create_if_missing=True) as db:
        db.put(b"a", b"1")
    with tamarack.DB(path, read_only=True) as db, tamarack.DB(path, read_only=True) as other:
        assert db.get(b"a") == other.get(b"a") == b"1"
        for call in (lambda: db.put(b"b", b""), lambda: db.delete(b"a"), db.flush, db.gc, lambda: db.update({b"b": b""})):
            with pytest.raises(tamarack.ReadOnlyError):
                call()


def test_a_failed_system_call_has_its_number(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(tamarack.IOError) as failed:
        tamarack.DB(str(tmp_path / "file" / "db"), create_if_missing=True)
    assert failed.value.errno and str(tmp_path) in str(failed.value)


def damage(path, at=-3000):
    """Changes a byte of the last value in the log."""
    log = sorted(pathlib.Path(path).glob("*.vlog"))[-1]
    content = bytearray(log.read_bytes())
    place = content.rindex(b"damaged" * 50) + 100
    content[place] ^= 1
    log.write_bytes(content)
    return str(log)


def make_damaged(path):
    with tamarack.DB(path, create_if_missing=True, compression=None) as db:
        db.update({b"a": b"whole" * 500, b"b": b"damaged" * 500, b"c": b"whole" * 500})
        db.flush()
    return damage(path)


def test_damage_is_told_with_its_place(path):
    log = make_damaged(path)
    with tamarack.DB(path) as db:
        with pytest.raises(tamarack.CorruptionError) as damaged:
            db.get(b"b")
        assert damaged.value.file == log
        assert damaged.value.offset > 0 and damaged.value.expected != damaged.value.found
        assert db.get(b"b", verify_checksums=False) != b"damaged" * 500
        for call in (lambda: db.multi_get([b"a", b"b"]), lambda: db.get_into(b"b", bytearray(9999)), lambda: list(db),
                     lambda: db.snapshot()[b"b"]):
            with pytest.raises(tamarack.CorruptionError):
                call()
        iterator = db.iterator()
        assert next(iterator)[0] == b"a"
        with pytest.raises(tamarack.CorruptionError):
            next(iterator)
        assert next(iterator)[0] == b"c", "an iterator goes on behind what is damaged"
        raw = db.raw_iterator()
        raw.seek(b"b")
        with pytest.raises(tamarack.CorruptionError):
            raw.value()
        assert raw.key() == b"b"
        report = db.check("values")
        assert not report["clean"] and report["problems"][0]["file"] == log
        assert db.check("structure")["clean"]
        with pytest.raises(ValueError, match="structure, checksums, liveness, values"):
            db.check("everything")
    with pytest.raises(tamarack.CorruptionError):
        tamarack.DB(path, paranoid_checks=True)


def test_a_repair_reports_what_is_lost(path):
    make_damaged(path)
    tried = tamarack.repair_db(path, dry_run=True)
    assert tried["dry_run"] and not tried["clean"]
    report = tamarack.repair_db(path)
    assert [(lost["first"], lost["last"]) for lost in report["lost"]] == [(b"b", b"b")]
    assert "b" in report["text"]
    with tamarack.DB(path) as db:
        assert list(db.keys()) == [b"a", b"c"]
    assert not tamarack.repair_db(path)["changed"]
    with pytest.raises(tamarack.InvalidArgumentError):
        tamarack.repair_db(path + "-none")
    with pytest.raises(TypeError):
        tamarack.repair_db(path, unknown=1)


def test_nothing_that_is_open_is_pickled_or_copied(db):
    for thing in (db, db.prefixed_db(b"p"), db.snapshot(), db.iterator(), db.raw_iterator(), db.write_batch()):
        for call in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot pickle or copy .*path"):
                call(thing)


def test_exceptions_are_pickled():
    error = pickle.loads(pickle.dumps(tamarack.NoSpaceError("full")))
    assert type(error) is tamarack.NoSpaceError and error.args == ("full",)


def test_classes_that_are_not_made_by_hand():
    for kind in (tamarack.Iterator, tamarack.RawIterator, tamarack.Snapshot, tamarack.WriteBatch, tamarack.PrefixedDB):
        with pytest.raises(TypeError):
            kind()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written(tmp_path):
    (tmp_path / "db").mkdir(mode=0o500)
    with pytest.raises(tamarack.IOError):
        tamarack.DB(str(tmp_path / "db"), create_if_missing=True)
