"""Orders of keys written in Python."""

import threading

import pytest

import tamarack


def ignoring_case(left, right):
    left, right = left.lower(), right.lower()
    return (left > right) - (left < right)


def test_keys_are_in_the_order_of_the_comparator(path):
    options = dict(comparator=ignoring_case, comparator_name=b"test.IgnoringCase")
    with tamarack.DB(path, create_if_missing=True, **options) as db:
        for key in (b"b", b"C", b"a", b"B", b"D"):
            db.put(key, key)
        assert [key.lower() for key in db.keys()] == [b"a", b"b", b"c", b"d"]
        assert db.get(b"A") == b"a" and db.get(b"b") == b"B" and b"d" in db
        assert list(db.iterator(start=b"B", stop=b"c", include_stop=True, include_key=False)) == [b"B", b"C"]
        assert list(db.iterator(start=b"B", include_start=False, include_key=False)) == [b"C", b"D"]
        assert list(db.iterator(start=b"d", include_start=False)) == []
        assert list(db.iterator(stop=b"D", include_stop=True, include_key=False)) == [b"a", b"B", b"C", b"D"]
        assert db.options()["comparator_name"] == b"test.IgnoringCase"
    with tamarack.DB(path, **options) as db:
        assert db.get(b"A") == b"a" and len(list(db)) == 4
    for other in ({}, dict(comparator=ignoring_case, comparator_name=b"test.Other")):
        with pytest.raises(tamarack.InvalidArgumentError, match="test.IgnoringCase"):
            tamarack.DB(path, **other)


def by_number(left, right):
    return int(left) - int(right)


def test_keys_without_the_prefix_are_no_keys_of_a_prefixed_database(path):
    options = dict(comparator=by_number, comparator_name=b"test.ByNumber")
    with tamarack.DB(path, create_if_missing=True, **options) as db:
        for key in (b"7", b"0071", b"0075"):
            db.put(key, key)
        db.put(b"72", b"72")
        assert list(db.prefixed_db(b"007").iterator(include_value=False)) == []
        assert [key for key in db.prefixed_db(b"7").iterator(include_value=False)] == [b""]
        assert [key for key in db.prefixed_db(b"7").iterator(include_value=False, reverse=True)] == [b""]


def test_what_is_no_comparator_is_refused(path):
    for options, kind in [
        (dict(comparator=None, comparator_name=b"name"), ValueError),
        (dict(comparator=ignoring_case), ValueError),
        (dict(comparator=ignoring_case, comparator_name=12), TypeError),
        (dict(comparator=b"not callable", comparator_name=b"name"), TypeError),
        (dict(comparator=ignoring_case, comparator_name=b""), ValueError),
        (dict(comparator=ignoring_case, comparator_name=b"\xff"), ValueError),
        (dict(comparator=ignoring_case, comparator_name=b"x" * 256), ValueError),
    ]:
        with pytest.raises(kind):
            tamarack.DB(path, create_if_missing=True, **options)
    tamarack.DB(path, create_if_missing=True, comparator=None, comparator_name=None).close()


@pytest.mark.parametrize("answer", [lambda order: order * 1000, float, lambda order: order > 0 or -(order < 0)])
def test_any_number_is_an_answer(path, answer):
    def compare(left, right):
        return answer((left > right) - (left < right))

    with tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"test") as db:
        for key in (b"b", b"a", b"c", b"b"):
            db.put(key, b"")
        assert list(db.keys()) == [b"a", b"b", b"c"]


def test_background_work_asks_the_comparator(small):
    threads = set()

    def compare(left, right):
        threads.add(threading.current_thread().name)
        return (left > right) - (left < right)

    db = small(comparator=compare, comparator_name=b"test")
    for number in range(1500):
        db.put(b"%d" % (number * 7919 % 1500), b"v" * 50)
    db.compact_range()
    assert sorted(db.keys()) == list(db.keys()) and len(list(db)) == 1500
    assert len(threads) > 1, "compactions run on threads of the engine"


def test_a_failing_comparator_ends_the_use_of_its_database(path):
    broken = threading.Event()

    def compare(left, right):
        if broken.is_set():
            raise ZeroDivisionError("on purpose")
        return (left > right) - (left < right)

    options = dict(comparator=compare, comparator_name=b"test")
    for call in (lambda db: db.put(b"x", b""), lambda db: db.get(b"a"), lambda db: list(db),
                 lambda db: db.iterator().seek(b"b"), lambda db: db.update({b"x": b"", b"y": b""}),
                 lambda db: b"a" in db, lambda db: db.multi_get([b"a"]), lambda db: db.flush() or db.compact_range()):
        with tamarack.DB(path, create_if_missing=True, **options) as db:
            db.update({b"a": b"1", b"b": b"2", b"c": b"3"})
            iterator = db.iterator()
            broken.set()
            with pytest.raises(tamarack.ComparatorError, match="comparator") as failed:
                call(db)
                iterator.seek(b"b")
            assert isinstance(failed.value.__cause__, ZeroDivisionError)
            broken.clear()
            for again in (lambda: db.get(b"a"), lambda: db.put(b"d", b""), lambda: next(iterator), db.stats):
                with pytest.raises(tamarack.ComparatorError):
                    again()
        assert db.closed
        with tamarack.DB(path, **options) as db:
            keys = list(db.keys())
            assert keys == sorted(keys) and {b"a", b"b", b"c"} <= set(keys)
            assert db.check("values")["clean"]
    broken.set()
    with pytest.raises(tamarack.ComparatorError):
        tamarack.DB(path, **options)
    broken.clear()
    tamarack.DB(path, **options).close()


def test_an_answer_that_is_no_number_is_a_failure(path):
    with pytest.raises(tamarack.ComparatorError) as failed:
        with tamarack.DB(path, create_if_missing=True, comparator=lambda *_: "less", comparator_name=b"test") as db:
            db.update({b"a": b"", b"b": b""})
    assert isinstance(failed.value.__cause__, TypeError)


def test_a_comparator_must_not_use_a_database(path, tmp_path):
    other = tamarack.DB(str(tmp_path / "other"), create_if_missing=True)
    refused = []

    def compare(left, right):
        for call in (lambda: db.get(b"a"), lambda: other.put(b"a", b""), db.close, iterator.close,
                     lambda: next(iterator)):
            try:
                call()
            except RuntimeError as error:
                refused.append(str(error))
        return (left > right) - (left < right)

    iterator = other.iterator()
    db = tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"test")
    db.update({b"a": b"", b"b": b""})
    assert refused and set(refused) == {"a comparator must not use a database"}
    assert list(db.keys()) == [b"a", b"b"]
    db.close()
    other.close()


def test_an_exception_of_another_comes_out_of_the_call(path):
    once = []

    def compare(left, right):
        if once:
            raise once.pop()
        return (left > right) - (left < right)

    with tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"test") as db:
        db.update({b"a": b"1", b"b": b"2"})
        for kind, call in ((KeyboardInterrupt, lambda: db.get(b"a")), (TimeoutError, lambda: db.put(b"c", b"3"))):
            once.append(kind("from a signal"))
            with pytest.raises(kind, match="from a signal"):
                call()
        assert list(db) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
