"""Single keys, as plyvel and as a dict have them; batches; what is passed in and out."""

import array
import ctypes
import os
import pathlib

import pytest

import tamarack


def test_values_are_set_found_and_removed(db):
    assert db.get(b"key") is None
    assert db.get(b"key", b"default") == b"default"
    assert db.get(b"key", default=7) == 7
    db.put(b"key", b"value")
    assert db.get(b"key", b"default") == b"value"
    db.put(b"key", b"other", sync=True)
    assert db.get(b"key") == b"other"
    db.delete(b"key")
    db.delete(b"key", sync=True)
    assert db.get(b"key") is None


@pytest.mark.parametrize("flag", [True, False, None])
def test_reads_take_plyvels_options(db, flag):
    db.put(b"key", b"v" * 5000)
    assert db.get(b"key", verify_checksums=flag, fill_cache=flag) == b"v" * 5000
    assert list(db.iterator(verify_checksums=flag, fill_cache=flag)) == [(b"key", b"v" * 5000)]
    with pytest.raises(TypeError):
        db.get(b"key", verify_checksums="yes")
    with pytest.raises(TypeError):
        db.get(b"key", None, True)


def test_a_database_is_like_a_dict(db):
    db[b"a"] = b"1"
    db.update({b"b": b"2", b"c": b"3"})
    db.update([(b"d", b"4")], sync=True)
    assert db[b"a"] == b"1"
    assert b"b" in db and b"x" not in db
    del db[b"b"]
    assert b"b" not in db
    with pytest.raises(KeyError) as missing:
        db[b"x"]
    assert missing.value.args == (b"x",)
    with pytest.raises(KeyError):
        del db[b"x"]
    assert list(db.keys()) == [b"a", b"c", b"d"]
    assert list(db.values()) == [b"1", b"3", b"4"]
    assert list(db.items()) == list(db) == [(b"a", b"1"), (b"c", b"3"), (b"d", b"4")]
    assert dict(db) == {b"a": b"1", b"c": b"3", b"d": b"4"}
    assert list(reversed(list(db.keys()))) == list(db.iterator(reverse=True, include_value=False))


def test_an_update_is_whole_or_absent(db):
    with pytest.raises(TypeError):
        db.update([(b"a", b"1"), (b"b", "text")])
    with pytest.raises(tamarack.InvalidArgumentError):
        db.update([(b"a", b"1"), (b"k" * 65536, b"")])
    assert list(db) == []


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 4096, 1 << 20, 5 << 20])
def test_values_of_all_sizes_come_back(db, size):
    value = os.urandom(size)
    db.put(b"key", value)
    assert db.get(b"key") == value
    room = bytearray(size)
    assert db.get_into(b"key", room) == size
    assert room == value


def test_any_bytes_are_keys(db):
    keys = [b"", b"\0", b"\0\0", b"\0\xff", "ключ".encode(), b"k" * 65535, b"\xff" * 300]
    for number, key in enumerate(keys):
        db.put(key, b"%d" % number)
    assert [db.get(key) for key in keys] == [b"%d" % number for number in range(len(keys))]
    assert list(db.keys()) == sorted(keys)
    assert db[b""] == b"0" and b"" in db


def test_limits_are_told(db):
    for call in (lambda: db.put(b"k" * 65536, b""), lambda: db.delete(b"k" * 65536)):
        with pytest.raises(tamarack.InvalidArgumentError, match="at most 65535 bytes"):
            call()
    with pytest.raises(ValueError):
        db.put(b"k" * 65536, b"")


def buffers(content):
    yield bytearray(content)
    yield memoryview(content)
    yield memoryview(bytearray(content))
    yield array.array("B", content)
    yield (ctypes.c_char * len(content)).from_buffer_copy(content)


def test_every_buffer_is_taken_for_keys_and_values(db):
    for number, (key, value) in enumerate(zip(buffers(b"a key"), buffers(b"a value"))):
        db.put(key, value)
        assert db.get(b"a key") == db.get(key) == db[key] == b"a value"
        assert key in db and db.multi_get([key]) == [b"a value"]
        with db.write_batch() as batch:
            batch.delete(key)
            batch.put(b"from batch", value)
        assert db.get(key) is None and db.get(b"from batch") == b"a value", number


def test_buffers_of_numbers_are_taken_as_their_bytes(db):
    numbers = array.array("d", [1.0, -2.5, 3e300])
    db.put(b"numbers", numbers)
    assert db.get(b"numbers") == numbers.tobytes()
    back = array.array("d", [0.0] * 4)
    assert db.get_into(b"numbers", back) == 24
    assert list(back) == [1.0, -2.5, 3e300, 0.0]
    grid = memoryview(bytes(range(12))).cast("B", (3, 4))
    db.put(b"grid", grid)
    assert db.get(b"grid") == bytes(range(12))


def test_arrays_of_numpy_are_taken(db):
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(600, dtype=numpy.float32).reshape(20, 30)
    db.put(numpy.frombuffer(b"key", dtype=numpy.uint8), values)
    back = numpy.zeros((20, 30), dtype=numpy.float32)
    assert db.get_into(b"key", back) == values.nbytes
    assert (back == values).all()
    with pytest.raises((BufferError, TypeError)):
        db.put(b"key", values[:, ::2])


def test_what_changes_after_a_put_does_not_change_the_database(db):
    value = bytearray(b"before")
    batch = db.write_batch()
    batch.put(b"batch", value)
    db.put(b"key", value)
    value[:] = b"after."
    batch.write()
    assert db.get(b"key") == db.get(b"batch") == b"before"


@pytest.mark.parametrize("wrong", ["text", 12, None, 1.5, [b"key"], object()])
def test_what_is_no_buffer_is_refused(db, wrong):
    db.put(b"key", b"value")
    snapshot, prefixed, batch = db.snapshot(), db.prefixed_db(b"p"), db.write_batch()
    calls = [
        lambda: db.get(wrong), lambda: db.put(wrong, b""), lambda: db.put(b"", wrong), lambda: db.delete(wrong),
        lambda: db[wrong], lambda: wrong in db, lambda: db.multi_get([b"key", wrong]),
        lambda: db.get_into(wrong, bytearray(9)), lambda: db.get_into(b"key", wrong),
        lambda: snapshot.get(wrong), lambda: prefixed.get(wrong), lambda: prefixed.put(b"", wrong),
        lambda: batch.put(wrong, b""), lambda: batch.put(b"", wrong), lambda: batch.delete(wrong),
        lambda: db.prefixed_db(wrong), lambda: db.iterator().seek(wrong), lambda: db.raw_iterator().seek(wrong),
        lambda: db.approximate_size(wrong, b""), lambda: db.get_property(wrong),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(TypeError) as refused:
            call()
        if wrong == "text":
            assert "not str" in str(refused.value), number
    assert list(db) == [(b"key", b"value")]
    if wrong is not None:
        with pytest.raises(TypeError):
            db.iterator(start=wrong)


def test_buffers_with_gaps_are_refused(db):
    for wrong in (memoryview(b"abcdef")[::2], memoryview(b"abcdef")[::-1]):
        with pytest.raises((BufferError, TypeError)):
            db.put(b"key", wrong)
    assert db.get(b"key") is None


def test_values_are_read_into_buffers(db):
    db.put(b"key", b"value")
    db.put(b"none", b"")
    room = bytearray(b"........")
    assert db.get_into(b"key", room) == 5
    assert room == b"value..."
    assert db.get_into(b"absent", room) is None
    assert db.get_into(b"none", room) == 0
    assert room == b"value..."
    middle = memoryview(room)[2:7]
    assert db.get_into(b"key", middle) == 5
    assert room == b"vavalue."
    with pytest.raises(ValueError, match="the value has 5 bytes and the buffer only 4"):
        db.get_into(b"key", memoryview(room)[:4])
    assert room == b"vavalue."
    for wrong in (b"bytes", memoryview(b"bytes")):
        with pytest.raises(TypeError):
            db.get_into(b"key", wrong)
    assert db.snapshot().get_into(b"key", room) == 5
    assert db.prefixed_db(b"k").get_into(b"ey", room) == 5
    del middle
    room.append(1)  # No buffer is held after the call.


def test_many_keys_are_read_at_one_moment(db):
    for number in range(2000):
        db.put(b"%04d" % number, b"%d" % number * 300)
    keys = [b"%04d" % number for number in (7, 1999, 3, 7)] + [b"absent"]
    expected = [b"%d" % number * 300 for number in (7, 1999, 3, 7)] + [None]
    assert db.multi_get(keys) == expected
    assert db.multi_get(key for key in keys) == expected
    assert db.multi_get([]) == []
    snapshot = db.snapshot()
    db.put(b"0007", b"new")
    assert db.multi_get([b"0007"]) == [b"new"]
    assert snapshot.multi_get(keys) == expected
    assert db.prefixed_db(b"00").multi_get([b"07", b"x"]) == [b"new", None]
    with pytest.raises(TypeError):
        db.multi_get(5)


def test_what_was_written_is_there_after_reopening(path):
    with tamarack.DB(path, create_if_missing=True) as db:
        db.put(b"a", b"1")
        with db.write_batch() as batch:
            batch.put(b"b", b"2" * 1000)
    with tamarack.DB(path) as db:
        assert list(db) == [(b"a", b"1"), (b"b", b"2" * 1000)]
        assert db.recovery()["operations"] == 2
        assert db.recovery()["torn_tail"] is None


def test_paths_are_text_bytes_or_path_like(tmp_path):
    for name in (str(tmp_path / "tëxt"), os.fsencode(tmp_path / "bytes"), pathlib.Path(tmp_path / "path"),
                 os.fsencode(tmp_path) + b"/\xff\xfe"):
        with tamarack.DB(name, create_if_missing=True) as db:
            assert db.name is name
            assert repr(name) in repr(db) and "closed" not in repr(db)
        assert "(closed)" in repr(db)
        assert os.path.isdir(name)
        tamarack.destroy_db(name)
        assert not os.path.exists(name)
    for wrong in (123, None, ["db"]):
        with pytest.raises(TypeError):
            tamarack.DB(wrong, create_if_missing=True)
    with pytest.raises(AttributeError):
        db.name = "other"


def test_batches_take_effect_as_a_whole(db):
    db.put(b"old", b"")
    batch = db.write_batch()
    batch.put(b"a", b"1")
    batch.delete(b"old")
    batch.put(b"b", b"2")
    batch.delete(b"b")
    assert list(db.keys()) == [b"old"]
    batch.write()
    assert list(db) == [(b"a", b"1")]
    db.delete(b"a")
    batch.write()
    assert list(db) == [(b"a", b"1")]
    batch.clear()
    batch.put(b"c", b"3")
    batch.write()
    assert list(db.keys()) == [b"a", b"c"]


def test_batches_are_appended_and_measured(db):
    batch = db.write_batch()
    empty = batch.approximate_size()
    batch.put(b"a", b"x" * 100)
    assert batch.approximate_size() >= empty + 101
    other = db.prefixed_db(b"p").write_batch()
    other.put(b"b", b"2")
    other.delete(b"a")
    batch.append(other)
    batch.append(batch)
    batch.write()
    assert list(db.keys()) == [b"a", b"pb"]
    with pytest.raises(TypeError):
        batch.append(db)
    batch.clear()
    assert batch.approximate_size() == empty


def test_a_block_writes_its_batch(db):
    with db.write_batch(sync=True) as batch:
        batch.put(b"a", b"")
        assert b"a" not in db
    assert b"a" in db
    with pytest.raises(ZeroDivisionError):
        with db.write_batch() as batch:
            batch.put(b"b", b"")
            1 / 0
    assert b"b" in db, "as in plyvel"
    with pytest.raises(ZeroDivisionError):
        with db.write_batch(transaction=True) as batch:
            batch.put(b"c", b"")
            1 / 0
    assert b"c" not in db
    with db.write_batch(transaction=True) as batch:
        batch.put(b"d", b"")
    assert b"d" in db


def test_syncs_are_counted_where_they_are_asked_for(path):
    with tamarack.DB(path, create_if_missing=True) as db:
        def synced(write):
            before = db.stats()["syncs"]
            write()
            return db.stats()["syncs"] > before

        assert not synced(lambda: db.put(b"a", b""))
        assert synced(lambda: db.put(b"a", b"", sync=True))
        assert synced(lambda: db.delete(b"a", sync=True))
        assert synced(lambda: db.update({b"b": b""}, sync=True))
        batch = db.write_batch(sync=True)
        batch.put(b"c", b"")
        assert synced(batch.write)
        db.put(b"a", b"")
        assert synced(db.sync)
    with tamarack.DB(path, durability="machine") as db:
        assert synced(lambda: db.put(b"a", b""))
        assert not synced(lambda: db.put(b"a", b"", sync=False))
        assert db.options()["durability"] == "machine"


def test_prefixed_databases_are_parts(db):
    part = db.prefixed_db(b"p/")
    assert part.db is db and part.prefix == b"p/" and repr(b"p/") in repr(part)
    part.put(b"a", b"1")
    part[b"b"] = b"2"
    part.update({b"c": b"3"})
    with part.write_batch() as batch:
        batch.put(b"d", b"4")
        batch.delete(b"c")
    db.put(b"p", b"outside")
    db.put(b"p0", b"outside")
    assert list(db.keys()) == [b"p", b"p/a", b"p/b", b"p/d", b"p0"]
    assert list(part) == list(part.items()) == [(b"a", b"1"), (b"b", b"2"), (b"d", b"4")]
    assert list(part.keys()) == [b"a", b"b", b"d"] and list(part.values()) == [b"1", b"2", b"4"]
    assert part[b"a"] == part.get(b"a") == b"1" and b"b" in part and b"p/b" not in part
    del part[b"b"]
    with pytest.raises(KeyError):
        del part[b"b"]
    snapshot = part.snapshot(name="part")
    part.delete(b"a")
    assert snapshot[b"a"] == b"1" and list(snapshot.keys()) == [b"a", b"d"] and snapshot.name == "part"
    assert b"a" in snapshot and b"a" not in part
    inner = part.prefixed_db(b"d")
    assert inner.prefix == b"p/d" and list(inner) == [(b"", b"4")] and inner.db is db


def test_snapshots_see_their_moment(db):
    db.put(b"a", b"1")
    with db.snapshot(name="before") as snapshot:
        db.put(b"a", b"2")
        db.put(b"b", b"2")
        assert snapshot.get(b"a") == snapshot[b"a"] == b"1"
        assert snapshot.get(b"b") is None and snapshot.get(b"b", b"x") == b"x" and b"b" not in snapshot
        assert list(snapshot) == list(snapshot.items()) == [(b"a", b"1")]
        assert list(snapshot.values()) == [b"1"]
        readers = db.stats()["readers"]
        assert [reader["name"] for reader in readers if reader["kind"] == "snapshot"] == ["before"]
        iterator, raw = snapshot.iterator(), snapshot.raw_iterator()
        with pytest.raises(KeyError):
            snapshot[b"b"]
    for call in (lambda: snapshot.get(b"a"), lambda: snapshot.iterator(), lambda: snapshot.raw_iterator(),
                 lambda: snapshot.multi_get([]), lambda: b"a" in snapshot):
        with pytest.raises(RuntimeError, match="snapshot is closed"):
            call()
    snapshot.close()
    snapshot.release()
    assert list(iterator) == [(b"a", b"1")]
    raw.seek_to_last()
    assert raw.item() == (b"a", b"1")
