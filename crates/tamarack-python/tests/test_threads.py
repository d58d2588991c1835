"""Many threads on one database: nobody waits for ever, and a close ends all work."""

import os
import threading
import time

import pytest

import tamarack


def together(*works):
    """Runs each in a thread, and raises what one of them has."""
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    [thread.start() for thread in threads]
    deadline = time.monotonic() + 100
    [thread.join(max(0, deadline - time.monotonic())) for thread in threads]
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if failures:
        raise failures[0]


def test_threads_see_each_others_writes(small):
    db = small()

    def write(name):
        def work():
            for number in range(400):
                key = b"%d/%03d" % (name, number)
                db.put(key, key * 50)
                assert db.get(key) == key * 50
                if number % 50 == 0:
                    with db.write_batch() as batch:
                        batch.put(key + b"a", b"1")
                        batch.put(key + b"b", b"1")
        return work

    def walk():
        for _ in range(20):
            keys = list(db.keys())
            assert keys == sorted(keys)
            assert sum(key.endswith(b"a") for key in keys) == sum(key.endswith(b"b") for key in keys)

    together(*[write(name) for name in range(4)], walk, walk)
    assert len(list(db)) == 4 * (400 + 16)


def test_threads_share_an_iterator_and_a_batch(db):
    db.update((b"%05d" % number, b"v" * 100) for number in range(5000))
    iterator, seen, batch = db.iterator(include_value=False), [], db.write_batch()

    def take():
        for key in iterator:
            seen.append(key)
            batch.put(b"x" + key, b"")

    together(*[take] * 4)
    assert sorted(seen) == [b"%05d" % number for number in range(5000)]
    batch.write()
    assert len(list(db)) == 10000


@pytest.mark.parametrize("comparator", [None, lambda left, right: (left > right) - (left < right)])
def test_a_close_while_others_work_ends_their_work(path, comparator):
    name = comparator and b"python.bytes"
    for _ in range(1 if comparator else 3):
        db = tamarack.DB(path, create_if_missing=True, comparator=comparator, comparator_name=name,
                         memtable_bytes=16 << 10, segment_bytes_max=64 << 10, recovery_log_max=1 << 20)
        started = threading.Barrier(10)

        def until_closed(work):
            def run():
                started.wait()
                with pytest.raises(tamarack.ClosedError):
                    while True:
                        work()
            return run

        def walk():
            for _ in db.iterator():
                pass

        def close():
            started.wait()
            time.sleep(0.2)
            db.close()
            assert db.closed

        together(until_closed(lambda: db.put(os.urandom(2), b"v" * 700)), until_closed(lambda: db.get(b"a")),
                 until_closed(walk), until_closed(lambda: db.multi_get([b"a", b"b"])), until_closed(db.flush),
                 until_closed(db.compact_range), until_closed(lambda: db.gc(until=1.1)),
                 until_closed(lambda: db.snapshot().get(b"a")), close, close)
    with tamarack.DB(path, comparator=comparator, comparator_name=name) as db:
        assert db.check("values")["clean"]


def test_a_close_ends_calls_that_take_long(path):
    slow, entered, ended = threading.Event(), threading.Event(), []

    def compare(left, right):
        if slow.is_set() and threading.current_thread() is not threading.main_thread():
            entered.set()
            time.sleep(0.01)
        return (left > right) - (left < right)

    db = tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"python.bytes")
    for value in (b"1", b"2"):
        db.update((b"%05d" % number, value) for number in range(10_000))
        db.flush()

    def compact():
        with pytest.raises(tamarack.ClosedError):
            db.compact_range()  # It would take minutes.
        ended.append(True)

    slow.set()
    compacting = threading.Thread(target=compact, daemon=True)
    compacting.start()
    assert entered.wait(60)
    db.close()  # On this thread the comparator is quick.
    together(compacting.join)
    assert ended
    tamarack.DB(path, comparator=compare, comparator_name=b"python.bytes").close()


def test_others_run_while_one_waits_for_the_engine(path):
    """A write that waits in the engine for another one, which waits for this thread, does not keep it from going on."""
    entered, go_on, held = threading.Event(), threading.Event(), threading.Event()

    def compare(left, right):
        if held.is_set() and threading.current_thread().name == "first":
            entered.set()
            assert go_on.wait(60)
        return (left > right) - (left < right)

    with tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"python.bytes") as db:
        db.put(b"a", b"")
        held.set()
        first = threading.Thread(target=db.put, args=(b"b", b""), name="first")
        first.start()
        assert entered.wait(60)
        second = threading.Thread(target=db.put, args=(b"c", b""))
        second.start()
        second.join(0.3)
        assert second.is_alive() and b"b" not in db, "writes become visible in their order"
        go_on.set()
        together(first.join, second.join)
        assert list(db.keys()) == [b"a", b"b", b"c"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_listener_hears_of_collections_and_may_read(small):
    heard, failures = [], []

    def listen(event):
        heard.append(event)
        failures.append(db.get(b"0"))
        if event["event"] == "ended":
            raise ValueError("a listener's failure is nobody else's")

    db = small(listener=listen, compression=None, gc="off")
    for round in range(4):
        for number in range(60):
            db.put(b"%d" % number, bytes([round]) * 3000)
    db.flush()
    db.pause_gc()
    report = db.gc(until=1.2)
    db.resume_gc()
    with pytest.raises(tamarack.InvalidArgumentError):
        db.resume_gc()
    assert report["bytes_after"] < report["bytes_before"]
    db.set_gc_bytes_per_second(1 << 30)
    with pytest.raises(OverflowError):
        db.set_gc_bytes_per_second(-1)
    db.sort_values()
    assert db.stats()["value_runs"] <= 8
    kinds = {event["event"] for event in heard}
    assert {"begun", "ended"} <= kinds
    ended = [event for event in heard if event["event"] == "ended"]
    assert ended[0]["report"]["bytes_before"] > 0 and ended[0]["job"] > 0
    assert db.get(b"7") == bytes([3]) * 3000


def test_a_listener_closes_nothing(small):
    refused = []

    def listen(event):
        with pytest.raises(RuntimeError, match="a listener must not close"):
            db.close()
        refused.append(db.get(b"0"))

    db = small(listener=listen, compression=None, gc="off")
    for round in range(4):
        for number in range(60):
            db.put(b"%d" % number, bytes([round]) * 3000)
    db.flush()
    db.gc(until=1.2)
    assert len(refused) > 1 and set(refused) == {bytes([3]) * 3000}
    db.put(b"0", b"")
