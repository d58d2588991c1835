// DB: entries, snapshots, properties, sizes, compactions.

#include <cstdint>
#include <string>

#include "check.h"

using namespace leveldb;

static void values() {
  check::Database db = check::Open("database");
  CHECK_EQUAL(check::Get(db.get(), "a"), "NONE");
  std::string value;
  const Status status = db->Get(ReadOptions(), "a", &value);
  CHECK(status.IsNotFound() && !status.ok());
  CHECK_EQUAL(status.ToString(), "NotFound: ");
  check::Put(db.get(), "a", "1");
  check::Put(db.get(), "a", "2");
  CHECK_EQUAL(check::Get(db.get(), "a"), "2");
  CHECK_OK(db->Delete(WriteOptions(), "a"));
  CHECK_OK(db->Delete(WriteOptions(), "a"));
  CHECK_EQUAL(check::Get(db.get(), "a"), "NONE");
  // No bytes, zeros, all bytes, and what is no text.
  check::Put(db.get(), "", "empty key");
  check::Put(db.get(), "empty value", "");
  check::Put(db.get(), Slice(), "no address");
  CHECK_EQUAL(check::Get(db.get(), ""), "no address");
  CHECK_EQUAL(check::Get(db.get(), "empty value"), "");
  const std::string odd("\0\xff\xc3\0", 4);
  check::Put(db.get(), odd, odd);
  CHECK_EQUAL(check::Get(db.get(), odd), odd);
  check::Put(db.get(), "\xc3\xa4\xe2\x98\x83", "\xf0\x9f\x8c\xb2");
  CHECK_EQUAL(check::Get(db.get(), "\xc3\xa4\xe2\x98\x83"), "\xf0\x9f\x8c\xb2");
  const std::string large(3 << 20, 'x');
  WriteOptions sync;
  sync.sync = true;
  CHECK_OK(db->Put(sync, "large", large));
  CHECK(check::Get(db.get(), "large") == large);
  CHECK_OK(db->Delete(sync, "large"));
  for (bool verify : {false, true}) {
    for (bool fill : {false, true}) {
      ReadOptions options;
      options.verify_checksums = verify;
      options.fill_cache = fill;
      CHECK_OK(db->Get(options, odd, &value));
      CHECK_EQUAL(value, odd);
    }
  }
}

static void what_was_written_is_there_again() {
  {
    check::Database db = check::Open("reopened");
    for (int number = 0; number < 1000; number++) {
      check::Put(db.get(), "key" + std::to_string(number), std::string(static_cast<size_t>(number), 'v'));
    }
  }
  Options options;
  check::Database db = check::Open("reopened", options);
  for (int number = 0; number < 1000; number++) {
    CHECK_EQUAL(check::Get(db.get(), "key" + std::to_string(number)).size(), static_cast<size_t>(number));
  }
}

static void snapshots() {
  check::Database db = check::Open("snapshot");
  check::Put(db.get(), "a", "1");
  const Snapshot* first = db->GetSnapshot();
  check::Put(db.get(), "a", "2");
  check::Put(db.get(), "b", "2");
  const Snapshot* second = db->GetSnapshot();
  CHECK_OK(db->Delete(WriteOptions(), "a"));
  db->CompactRange(nullptr, nullptr);
  CHECK_EQUAL(check::All(db.get(), first), "a=1");
  CHECK_EQUAL(check::All(db.get(), second), "a=2 b=2");
  CHECK_EQUAL(check::All(db.get()), "b=2");
  CHECK_EQUAL(check::Get(db.get(), "a", first), "1");
  db->ReleaseSnapshot(first);
  for (bool verify : {false, true}) {
    ReadOptions options;
    options.verify_checksums = verify;
    options.fill_cache = !verify;
    options.snapshot = second;
    std::string value;
    CHECK_OK(db->Get(options, "a", &value));
    CHECK_EQUAL(value, "2");
  }
  db->ReleaseSnapshot(second);
}

static void properties() {
  check::Database db = check::Open("property");
  check::Put(db.get(), "key", "value");
  db->CompactRange(nullptr, nullptr);
  std::string value = "before";
  CHECK(!db->GetProperty("leveldb.unknown", &value));
  CHECK(!db->GetProperty("", &value) && !db->GetProperty("unknown", &value));
  CHECK(!db->GetProperty(Slice("leveldb.stats\0", 14), &value));
  CHECK(!db->GetProperty("leveldb.num-files-at-level7", &value));
  CHECK(db->GetProperty("leveldb.stats", &value) && !value.empty());
  CHECK(db->GetProperty("leveldb.sstables", &value) && !value.empty());
  // Not ended by a zero.
  CHECK(db->GetProperty(Slice("leveldb.statsxxx", 13), &value));
  check::Put(db.get(), "in memory", "value");
  CHECK(db->GetProperty("leveldb.approximate-memory-usage", &value) && std::stol(value) > 0);
  long files = 0;
  for (int level = 0; level < 7; level++) {
    CHECK(db->GetProperty("leveldb.num-files-at-level" + std::to_string(level), &value));
    files += std::stol(value);
  }
  CHECK_EQUAL(files, 1);
}

static void sizes() {
  Options options = check::Creating();
  options.write_buffer_size = 1 << 20;
  options.compression = kNoCompression;
  check::Database db = check::Open("sizes", options);
  const std::string value(1000, 'v');
  for (int number = 1000; number < 6000; number++) check::Put(db.get(), "k" + std::to_string(number), value);
  db->CompactRange(nullptr, nullptr);
  const Range ranges[] = {Range("k1000", "k2000"), Range("a", "b"), Range("k1000", "k6000"),
                          Range("", "\xff")};
  uint64_t sizes[4] = {7, 7, 7, 7};
  db->GetApproximateSizes(ranges, 4, sizes);
  // Some hundreds of keys may be counted too many or too few.
  CHECK(sizes[0] > 600000 && sizes[0] < 1500000);
  CHECK_EQUAL(sizes[1], 0u);
  CHECK(sizes[2] > 4500000 && sizes[2] < 5700000);
  CHECK(sizes[3] >= sizes[2]);
  db->GetApproximateSizes(ranges, 0, nullptr);
}

static void compactions() {
  check::Database db = check::Open("compaction");
  for (int number = 0; number < 100; number++) check::Put(db.get(), "k" + std::to_string(number), "v");
  const Slice begin("k2"), end("k5"), none;
  db->CompactRange(&begin, &end);
  db->CompactRange(&end, &begin);
  db->CompactRange(&begin, nullptr);
  db->CompactRange(nullptr, &end);
  db->CompactRange(&none, &none);
  check::Walk walk(db->NewIterator(ReadOptions()));
  int count = 0;
  for (walk->SeekToFirst(); walk->Valid(); walk->Next()) count++;
  CHECK_EQUAL(count, 100);
}

void database_suite() {
  values();
  what_was_written_is_there_again();
  snapshots();
  properties();
  sizes();
  compactions();
}
