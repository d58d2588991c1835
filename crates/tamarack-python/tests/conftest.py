"""What the tests share: databases in directories of their own, and programs that are run beside the tests."""

import subprocess
import sys
import textwrap

import pytest

import tamarack


@pytest.fixture
def path(tmp_path):
    """Where a database may be made; not there yet."""
    return str(tmp_path / "db")


@pytest.fixture
def db(path):
    """An empty database."""
    with tamarack.DB(path, create_if_missing=True, error_if_exists=True) as db:
        yield db


@pytest.fixture
def small(path):
    """A function that opens the database with tiny files, so that little data makes much background work."""
    opened = []

    def open_small(**options):
        sizes = dict(memtable_bytes=16 << 10, segment_bytes_max=64 << 10, table_bytes_max=16 << 10,
                     level_bytes_base=32 << 10, recovery_log_max=1 << 20)
        db = tamarack.DB(path, create_if_missing=True, **(sizes | options))
        opened.append(db)
        return db

    yield open_small
    for db in opened:
        db.close()


@pytest.fixture
def program(tmp_path):
    """A function that runs a Python program, to its end or a deadline, and returns what it printed.

    What must end the interpreter, or is to be interrupted, or may hang if it is wrong, is tried in one.
    """
    def run(text, *arguments, status=0):
        file = tmp_path / "program.py"
        file.write_text(textwrap.dedent(text))
        command = [sys.executable, "-X", "faulthandler", str(file), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
