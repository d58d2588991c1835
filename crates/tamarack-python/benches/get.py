"""What a ``get`` costs beside plyvel's, on the same data in one run.

    pip install . plyvel
    python benches/get.py

Both stores hold the same keys with the same values. Keys are read in the same
random order, in rounds that take turns; the best round of each counts, since
whatever else runs on the machine only ever adds time. It is printed with the
median, and exits with 1 if the ratio of the best rounds exceeds ``--at-most``.
"""

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time

import plyvel
import tamarack


def fill(db, keys, value_bytes):
    generator = random.Random(7)
    batch = db.write_batch()
    for number, key in enumerate(keys):
        batch.put(key, generator.randbytes(value_bytes))
        if number % 1000 == 999:
            batch.write()
            batch.clear()
    batch.write()


def read(get, keys):
    """Seconds for one ``get`` of each key."""
    started = time.perf_counter()
    for key in keys:
        get(key)
    return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--value-bytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--at-most", type=float, default=1.2)
    parser.add_argument("--plyvel-cache", type=int, metavar="BYTES",
                        help="plyvel's lru_cache_size; LevelDB's default is 8 MiB")
    parser.add_argument("--in-tables", action="store_true",
                        help="compact both before reading; otherwise they are as loading left them")
    arguments = parser.parse_args()

    keys = [b"key%013d" % number for number in range(arguments.keys)]
    directory = tempfile.mkdtemp(prefix="tamarack-bench-")
    try:
        stores = {
            "plyvel": plyvel.DB(f"{directory}/plyvel", create_if_missing=True,
                                lru_cache_size=arguments.plyvel_cache),
            "tamarack": tamarack.DB(f"{directory}/tamarack", create_if_missing=True),
        }
        for db in stores.values():
            fill(db, keys, arguments.value_bytes)
            if arguments.in_tables:
                db.compact_range()
        random.Random(11).shuffle(keys)
        for key in keys:
            assert stores["plyvel"].get(key) == stores["tamarack"].get(key) is not None
        rounds = {name: [] for name in stores}
        for _ in range(arguments.rounds):
            for name, db in stores.items():
                rounds[name].append(read(db.get, keys) / len(keys) * 1e6)
        for db in stores.values():
            db.close()
    finally:
        shutil.rmtree(directory)

    print(f"{arguments.keys} keys, values of {arguments.value_bytes} bytes, {arguments.rounds} rounds")
    for name, took in rounds.items():
        print(f"{name:<10} {min(took):7.3f} us at best, {statistics.median(took):7.3f} us median")
    ratio = min(rounds["tamarack"]) / min(rounds["plyvel"])
    median = statistics.median(rounds["tamarack"]) / statistics.median(rounds["plyvel"])
    print(f"tamarack / plyvel: {ratio:.2f} at best, {median:.2f} median (at most {arguments.at_most})")
    return 0 if ratio <= arguments.at_most else 1


if __name__ == "__main__":
    sys.exit(main())
