"""Iterators against a model: a sorted list with a gap in it. Raw iterators. What they outlive."""

import gc
import random
import weakref

import pytest

import tamarack


class Model:
    """What an iterator over a sorted list of entries does."""

    def __init__(self, entries, reverse):
        self.entries, self.reverse = entries, reverse
        self.gap = len(entries) if reverse else 0

    def step(self, forward):
        if forward != self.reverse:
            if self.gap == len(self.entries):
                return None
            self.gap += 1
            return self.entries[self.gap - 1]
        if self.gap == 0:
            return None
        self.gap -= 1
        return self.entries[self.gap]

    def seek(self, order, target):
        self.gap = sum(order(key) < order(target) for key, _ in self.entries)


def ascending(key):
    return key


def descending(key):
    return tuple(255 - byte for byte in key) + (256,)


def compare_descending(left, right):
    return (left < right) - (left > right)


@pytest.fixture(params=["memory", "tables", "other order"])
def filled(request, small):
    """A database, what is in it, and its order."""
    order, options = ascending, {}
    if request.param == "other order":
        order = descending
        options = dict(comparator=compare_descending, comparator_name=b"test.descending")
    db = small(**options)
    generator = random.Random(5)
    entries = {}
    for _ in range(300):
        key = bytes(generator.choices(b"abc\xff\0", k=generator.randrange(4)))
        entries[key] = generator.randbytes(generator.choice([0, 10, 600]))
        db.put(key, entries[key])
        if generator.random() < 0.2:
            gone = generator.choice(sorted(entries))
            del entries[gone]
            db.delete(gone)
    if request.param == "tables":
        db.compact_range()
    return db, sorted(entries.items(), key=lambda entry: order(entry[0])), order


def within(order, key, start, stop, include_start, include_stop):
    after = start is None or order(start) < order(key) or (include_start and key == start)
    before = stop is None or order(key) < order(stop) or (include_stop and key == stop)
    return after and before


def test_iterators_do_what_the_model_does(filled):
    db, entries, order = filled
    generator = random.Random(9)

    def some_key():
        return bytes(generator.choices(b"abc\xff\0", k=generator.randrange(4)))

    for _ in range(400):
        start, stop = (generator.choice([None, some_key()]) for _ in range(2))
        include_start, include_stop, reverse = (generator.random() < 0.5 for _ in range(3))
        expected = [entry for entry in entries
                    if within(order, entry[0], start, stop, include_start, include_stop)]
        model = Model(expected, reverse)
        iterator = db.iterator(start=start, stop=stop, include_start=include_start,
                               include_stop=include_stop, reverse=reverse)
        for _ in range(generator.randrange(25)):
            action = generator.choice(["next", "next", "next", "prev", "seek", "start", "stop"])
            if action == "next":
                assert next(iterator, None) == model.step(True)
            elif action == "prev":
                entry = model.step(False)
                if entry is None:
                    with pytest.raises(StopIteration):
                        iterator.prev()
                else:
                    assert iterator.prev() == entry
            elif action == "seek":
                target = some_key()
                iterator.seek(target)
                model.seek(order, target)
            elif action == "start":
                iterator.seek_to_start()
                model.gap = 0
            else:
                iterator.seek_to_stop()
                model.gap = len(expected)
        iterator.close()


def test_prefixes_select_keys(db):
    keys = [b"", b"a", b"a\xff", b"a\xff\xff", b"b", b"ba", b"\xff", b"\xff\xff", b"\xff\xff\xff", b"\xff\xffa"]
    db.update((key, b"v") for key in keys)
    for prefix in [b"", b"a", b"a\xff", b"b", b"c", b"\xff", b"\xff\xff"]:
        expected = sorted(key for key in keys if key.startswith(prefix))
        for noise in ({}, dict(include_start=False, include_stop=True)):
            assert list(db.iterator(prefix=prefix, include_value=False, **noise)) == expected
        assert list(db.iterator(prefix=prefix, include_value=False, reverse=True)) == expected[::-1]
        below = db.prefixed_db(prefix)
        assert list(below.keys()) == [key[len(prefix):] for key in expected]
        assert list(below.iterator(prefix=b"\xff", include_value=False)) == [
            key[len(prefix):] for key in sorted(keys) if key.startswith(prefix + b"\xff")]
    for bound in ("start", "stop"):
        with pytest.raises(TypeError, match="prefix"):
            db.iterator(prefix=b"a", **{bound: b"a"})


def test_bounds_below_a_prefix(db):
    part = db.prefixed_db(b"p")
    part.update((b"%d" % number, b"") for number in range(10))
    db.update({b"o9": b"", b"q0": b""})

    def keys(**options):
        return b"".join(part.iterator(include_value=False, **options))

    assert keys(start=b"7") == b"789"
    assert keys(start=b"7", include_start=False) == b"89"
    assert keys(include_start=False) == b"0123456789"
    assert keys(stop=b"2") == b"01"
    assert keys(stop=b"2", include_stop=True) == b"012"
    assert keys(start=b"8", include_stop=True) == b"89"
    assert keys(start=b"2", stop=b"5", reverse=True) == b"432"
    assert keys(start=b"5", stop=b"2") == b""
    iterator = part.iterator(include_value=False)
    iterator.seek(b"5")
    assert next(iterator) == b"5" and iterator.prev() == b"5" and iterator.prev() == b"4"


def test_what_is_given_is_chosen(db):
    db.put(b"key", b"value")
    assert list(db.iterator()) == list(db) == [(b"key", b"value")]
    assert type(next(db.iterator())) is tuple
    assert list(db.iterator(include_value=False)) == [b"key"]
    assert list(db.iterator(include_key=False)) == [b"value"]
    assert list(db.iterator(include_key=False, include_value=False)) == [None]
    iterator = db.iterator()
    assert iter(iterator) is iterator and iterator.next() == (b"key", b"value")
    with pytest.raises(StopIteration):
        iterator.next()
    with pytest.raises(TypeError, match="unexpected keyword argument 'limit'"):
        db.iterator(limit=3)
    with pytest.raises(TypeError):
        db.iterator(b"start")


def test_iterators_see_the_moment_they_began(db):
    db.put(b"a", b"1")
    iterator, raw = db.iterator(), db.raw_iterator()
    db.put(b"a", b"2")
    db.put(b"b", b"2")
    assert list(iterator) == [(b"a", b"1")]
    raw.seek_to_last()
    assert raw.item() == (b"a", b"1")


def test_raw_iterators_are_moved_and_looked_at(db):
    raw = db.raw_iterator()
    raw.seek_to_first()
    assert not raw.valid()
    db.update((b"%03d" % number, b"%d" % number * 400) for number in range(0, 100, 2))
    raw = db.raw_iterator(verify_checksums=True, fill_cache=False)
    for call in (raw.key, raw.value, raw.item, raw.next, raw.prev):
        with pytest.raises(tamarack.IteratorInvalidError):
            call()
    raw.seek_to_first()
    assert raw.item() == (b"000", b"0" * 400)
    raw.next()
    assert raw.key() == b"002" and raw.value() == b"2" * 400
    raw.prev()
    raw.prev()
    assert not raw.valid()
    raw.seek(b"005")
    assert raw.key() == b"006"
    raw.seek(b"099")
    assert not raw.valid()
    raw.seek_to_last()
    assert raw.key() == b"098"
    raw.next()
    assert not raw.valid()
    with db.raw_iterator() as raw:
        pass
    with pytest.raises(RuntimeError):
        raw.valid()


def test_iterators_that_outlive_their_database_are_closed(path):
    db = tamarack.DB(path, create_if_missing=True)
    db.update((b"%d" % number, b"x" * 1000) for number in range(100))
    snapshot, batch, part = db.snapshot(), db.write_batch(), db.prefixed_db(b"1")
    iterator, raw, inner = db.iterator(), db.raw_iterator(), snapshot.iterator()
    assert next(iterator) and next(inner)
    raw.seek_to_first()
    closed = db.iterator()
    closed.close()
    closed.close()
    db.close()
    calls = [
        lambda: next(iterator), iterator.prev, iterator.seek_to_start, iterator.seek_to_stop,
        lambda: iterator.seek(b"1"), lambda: next(inner), raw.valid, raw.key, raw.next, lambda: raw.seek(b"1"),
        lambda: next(closed), lambda: snapshot.get(b"1"), lambda: b"1" in snapshot, snapshot.iterator,
        lambda: batch.put(b"a", b""), batch.write, batch.clear, batch.approximate_size, batch.__enter__,
        lambda: part.get(b"1"), lambda: part.put(b"1", b""), part.iterator, part.snapshot, part.write_batch,
        lambda: db.get(b"1"), lambda: db.put(b"1", b""), lambda: db.delete(b"1"), db.iterator, db.raw_iterator,
        db.snapshot, db.write_batch, db.stats, db.sync, db.flush, db.gc, db.check, db.compact_range,
        lambda: db[b"1"], lambda: b"1" in db, lambda: iter(db), db.approximate_sizes, db.wait_idle, db.recovery,
        lambda: db.get_property(b"leveldb.stats"), lambda: db.multi_get([]), lambda: db.get_into(b"1", bytearray(9)),
        lambda: db.update({}), db.pause_gc, db.resume_gc, db.sort_values, lambda: db.set_gc_bytes_per_second(0),
        lambda: db.checkpoint(path + "-copy"),
    ]
    for number, call in enumerate(calls):
        with pytest.raises(RuntimeError, match="closed") as refused:
            call()
        assert isinstance(refused.value, tamarack.ClosedError), number
    assert db.closed and db.options()["read_only"] is False
    # Nothing holds the directory, though all of them are still there.
    with tamarack.DB(path) as reopened:
        assert len(list(reopened)) == 100
    for again in (db, iterator, raw, inner, snapshot):
        again.close()


def test_nothing_is_held_by_what_is_gone(db):
    db.put(b"a", b"")
    iterator, snapshot = db.iterator(), db.snapshot()
    next(iterator)
    assert len(db.stats()["readers"]) == 2
    gone = weakref.ref(iterator)
    del iterator, snapshot
    gc.collect()
    assert gone() is None and db.stats()["readers"] == []
    for _ in range(1000):
        db.iterator().close()
    assert db.stats()["readers"] == []


def test_a_database_that_is_dropped_is_closed(path):
    db = tamarack.DB(path, create_if_missing=True)
    iterator = db.iterator()
    del db
    with pytest.raises(tamarack.LockedError):
        tamarack.DB(path)
    del iterator
    gc.collect()
    tamarack.DB(path).close()


def test_a_finalizer_may_use_the_iterator_it_interrupts(db):
    db.update((b"%04d" % number, b"v" * 600) for number in range(2000))
    iterator = db.iterator()
    seen = []

    class Cycle:
        def __init__(self):
            self.itself = self

        def __del__(self):
            entry = next(iterator, None)
            seen.append(entry)

    kept = []
    for entry in iterator:
        kept.append((entry, Cycle() if len(kept) % 10 == 0 else None, []))
        kept[-1][2].append(kept[-1])
        del kept[:-5]
    assert len(seen) < 1000


def test_an_expectation_changes_what_is_read_together_and_nothing_else(tmp_path):
    with tamarack.DB(tmp_path / "db", create_if_missing=True) as db:
        entries = [(b"key%03d" % number, bytes([number]) * 3000) for number in range(100)]
        db.update(dict(entries))
        db.flush()

        def read(**options):
            before = db.stats()["value_read_bytes"]
            next(db.iterator(**options))
            return db.stats()["value_read_bytes"] - before

        one = read(expected_entries=1)
        assert one > 0 and read(expected_entries=20) == 20 * one
        for expected in (None, 0, 1, 7, 100, 10**9):
            options = {"expected_entries": expected}
            assert list(db.iterator(**options)) == entries
            assert list(db.iterator(reverse=True, **options)) == entries[::-1]
            assert list(db.snapshot().iterator(start=b"key050", **options)) == entries[50:]
            part = db.prefixed_db(b"key")
            assert list(part.iterator(include_value=False, **options)) == [key[3:] for key, _ in entries]
        for bad in (-1, 2**64, "many"):
            with pytest.raises((OverflowError, TypeError)):
                db.iterator(expected_entries=bad)
