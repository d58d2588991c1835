"""Forks, the interpreter's end, and interruptions: each in a program of its own."""

import pytest

PRELUDE = """
    import os, signal, sys, threading, time, tamarack
    # Whoever runs the tests in the background may ignore interruptions, and programs inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    path = sys.argv[1]
    def child(work):
        pid = os.fork()
        if pid == 0:
            try:
                work()
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            os._exit(0)
        return pid
    def joined(pid):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    def raises(kind, call):
        try:
            call()
        except kind as error:
            return str(error)
        raise AssertionError(f"no {kind.__name__}")
"""


@pytest.fixture
def run(program):
    return lambda text, *arguments, **options: program(PRELUDE + text, *arguments, **options)


def test_a_forked_child_is_refused_and_does_no_harm(run, path):
    run("""
    db = tamarack.DB(path, create_if_missing=True, memtable_bytes=64 << 10)
    part, snapshot, batch = db.prefixed_db(b"k"), db.snapshot(), db.write_batch()
    db.update((b"k%04d" % number, b"v" * 1000) for number in range(500))
    iterator, raw = db.iterator(), db.raw_iterator()
    next(iterator)
    def work():
        global calls
        calls = [lambda: db.get(b"k"), lambda: db.put(b"k", b""), lambda: db.delete(b"k"), lambda: b"k" in db,
                 lambda: db.multi_get([b"k"]), lambda: list(db), db.stats, db.flush, db.gc, db.sync, db.snapshot,
                 db.write_batch, lambda: db.update({b"a": b""}), lambda: part.get(b"k"), lambda: part.put(b"k", b""),
                 lambda: snapshot.get(b"k"), snapshot.iterator, lambda: next(iterator), iterator.prev,
                 lambda: iterator.seek(b"k"), raw.valid, raw.seek_to_first, lambda: batch.put(b"k", b""), batch.write,
                 batch.clear, lambda: db.checkpoint(path + "-copy")]
        for call in calls:
            assert "before this process was forked" in raises(tamarack.ForkError, call)
            raises(RuntimeError, call)
        assert db.closed
        # Closing and dropping are allowed, and touch nothing.
        iterator.close(), raw.close(), snapshot.close(), db.close()
        raises(tamarack.LockedError, lambda: tamarack.DB(path))
        import gc
        calls.clear()
        for name in ("db", "part", "snapshot", "batch", "iterator", "raw"):
            del globals()[name]
        gc.collect()
    assert joined(child(work)) == 0
    assert len(list(db)) == 500 and next(iterator)[0] == b"k0001" and not db.closed
    db.put(b"after", b"fork", sync=True)
    assert db.check("values")["clean"]
    db.close()
    with tamarack.DB(path) as db:
        assert db.get(b"after") == b"fork" and len(list(db)) == 501
    """, path)


def test_a_child_that_lives_on_does_not_keep_the_directory(run, path):
    run("""
    db = tamarack.DB(path, create_if_missing=True)
    read, write = os.pipe()
    pid = child(lambda: os.read(read, 1))
    db.put(b"a", b"1")
    db.close()
    with tamarack.DB(path) as db:
        assert db.get(b"a") == b"1"
    os.write(write, b".")
    assert joined(pid) == 0
    """, path)


def test_a_child_opens_databases_of_its_own(run, path):
    run("""
    db = tamarack.DB(path, create_if_missing=True)
    db.put(b"a", b"1")
    db.close()
    def work():
        with tamarack.DB(path) as db:
            db.put(b"b", b"2")
            assert joined(child(lambda: raises(tamarack.ForkError, lambda: db.get(b"a")))) == 0
            assert list(db.keys()) == [b"a", b"b"]
    assert joined(child(work)) == 0
    with tamarack.DB(path) as db:
        assert list(db.keys()) == [b"a", b"b"]
    """, path)


def test_forks_while_threads_write_and_walk(run, path):
    run("""
    db = tamarack.DB(path, create_if_missing=True, memtable_bytes=64 << 10, segment_bytes_max=128 << 10)
    ended = threading.Event()
    def write(name):
        number = 0
        while not ended.is_set():
            db.put(b"%d-%d" % (name, number % 500), os.urandom(700))
            number += 1
    def walk():
        while not ended.is_set():
            for _ in db.iterator():
                pass
    def refused():
        raises(tamarack.ForkError, lambda: db.put(b"a", b""))
        db.close()
    threads = [threading.Thread(target=write, args=(name,)) for name in range(3)] + [threading.Thread(target=walk)]
    [thread.start() for thread in threads]
    for _ in range(15):
        assert joined(child(refused)) == 0
    # One that runs to the interpreter's own end, with all that it does there.
    pid = os.fork()
    if pid == 0:
        ended.set()
        refused()
        sys.exit(7)
    assert joined(pid) == 7
    ended.set()
    [thread.join() for thread in threads]
    assert db.check("values")["clean"]
    """, path)


def test_multiprocessing_by_fork_gets_a_clear_error(run, path):
    assert "ForkError" in run("""
    import multiprocessing
    db = tamarack.DB(path, create_if_missing=True)
    def work(_):
        try:
            return db.get(b"a")
        except tamarack.Error as error:
            return type(error).__name__
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(4)))
    db.put(b"a", b"1")
    """, path)


def test_what_is_open_at_the_end_is_closed(run, path):
    run("""
    db = tamarack.DB(path, create_if_missing=True)
    db.put(b"a", b"1")
    iterator = db.iterator()
    keep = [db, iterator]
    keep.append(keep)
    def go_on():
        while True:
            try:
                db.put(b"b", b"2")
            except tamarack.ClosedError:
                time.sleep(60)
    threading.Thread(target=go_on, daemon=True).start()
    time.sleep(0.1)
    """, path)
    # A close cuts the log to its size: nothing is reserved any more.
    run("""
    logs = [f"{path}/{name}" for name in os.listdir(path) if name.endswith(".vlog")]
    assert logs and all(os.stat(log).st_size < 8192 or os.stat(log).st_size % 4096 for log in logs), logs
    db = tamarack.DB(path)
    assert db.get(b"a") == b"1" and db.recovery()["torn_tail"] is None
    """, path)


def test_the_end_comes_while_a_comparator_is_at_work(run, path):
    for _ in range(3):
        run("""
    def compare(left, right):
        return (left > right) - (left < right)
    db = tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"python.bytes",
                     memtable_bytes=16 << 10, segment_bytes_max=64 << 10, recovery_log_max=1 << 20)
    def go_on():
        number = 0
        while True:
            number += 1
            try:
                db.put(b"%d" % (number % 300), b"v" * 200)
            except tamarack.ClosedError:
                time.sleep(60)
    for _ in range(2):
        threading.Thread(target=go_on, daemon=True).start()
    time.sleep(0.3)
        """, path)


INTERRUPTED = """
    def interrupted(call, after=0.3):
        # The call would not come to its end by itself before the test's deadline.
        threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        started = time.monotonic()
        try:
            call()
        except KeyboardInterrupt:
            return time.monotonic() - started
        raise AssertionError("it came to its end")
"""


def test_a_long_scan_is_interrupted(run, path):
    run(INTERRUPTED + """
    import collections, itertools
    db = tamarack.DB(path, create_if_missing=True)
    db.update((b"%08d" % number, b"v") for number in range(1000))
    # One scan after another in C alone: no instruction of Python's is between two steps, as in ``list(db)``.
    scans = itertools.chain.from_iterable(iter(db.iterator, None))
    interrupted(lambda: collections.deque(scans, maxlen=0))
    raw = itertools.chain.from_iterable(iter(db.prefixed_db(b"0").snapshot().keys, None))
    interrupted(lambda: collections.deque(raw, maxlen=0))
    assert len(list(db)) == 1000
    """, path)


def test_long_calls_are_interrupted_and_end_with_the_database(run, path):
    run(INTERRUPTED + """
    def compare(left, right):
        # Slow, so that what the engine does with it is long on any machine.
        if slow.is_set() and threading.current_thread() is not threading.main_thread():
            time.sleep(0.02)
        return (left > right) - (left < right)
    slow = threading.Event()
    db = tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"python.bytes")
    db.update((b"%04d" % number, b"v") for number in range(2000))
    db.flush()
    db.update((b"%04d" % number, b"w") for number in range(2000))
    slow.set()
    assert interrupted(lambda: db.compact_range()) < 20
    assert db.get(b"0001") == b"w"
    assert interrupted(db.wait_idle) < 20
    slow.clear()
    db.compact_range()
    assert db.get(b"0001") == b"w"
    db.close()
    with tamarack.DB(path, comparator=compare, comparator_name=b"python.bytes") as db:
        assert len(list(db)) == 2000 and db.check("values")["clean"]
    """, path)


def test_an_interruption_inside_a_comparator_breaks_nothing(run, path):
    run(INTERRUPTED + """
    def compare(left, right):
        time.sleep(0.001)
        return (left > right) - (left < right)
    db = tamarack.DB(path, create_if_missing=True, comparator=compare, comparator_name=b"python.bytes")
    written = [0]
    def write():
        while True:
            written[0] += 1
            db.put(b"%06d" % (written[0] * 7919 % 1000), b"%d" % written[0])
    interrupted(write)
    interrupted(lambda: [db.get(b"%06d" % (number % 1000)) for number in range(10**6)])
    db.put(b"after", b"")
    keys = list(db.keys())
    assert keys == sorted(keys) and b"after" in keys and len(keys) > 10
    assert abs(len(keys) - 1 - written[0]) <= 1, "the call that was interrupted took effect, or never began"
    """, path)
