// What a database takes and does not take, what Tamarack adds, and what outlives what.

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"
#include "tamarack/db.h"

namespace leveldb {
// As programs have it that reach into batches.
class WriteBatchInternal {
 public:
  static std::string* Contents(WriteBatch* batch) { return &batch->rep_; }
};
}  // namespace leveldb

using namespace leveldb;

class Counter : public WriteBatch::Handler {
 public:
  void Put(const Slice&, const Slice&) override { operations++; }
  void Delete(const Slice&) override { operations++; }
  int operations = 0;
};

static void long_keys() {
  check::Database db = check::Open("limit");
  const std::string longest(65535, 'k'), longer(65536, 'k');
  check::Put(db.get(), longest, "value");
  CHECK_EQUAL(check::Get(db.get(), longest), "value");
  CHECK(db->Put(WriteOptions(), longer, "value").IsInvalidArgument());
  CHECK(db->Delete(WriteOptions(), longer).IsInvalidArgument());
  CHECK_EQUAL(check::Get(db.get(), longer), "NONE");
  // A batch holds it, and all of it is refused.
  WriteBatch batch;
  batch.Put("with it", "value");
  batch.Put(longer, "value");
  Counter counter;
  CHECK_OK(batch.Iterate(&counter));
  CHECK_EQUAL(counter.operations, 2);
  CHECK(db->Write(WriteOptions(), &batch).IsInvalidArgument());
  CHECK_EQUAL(check::Get(db.get(), "with it"), "NONE");
}

// Nothing of these bytes is read: there are not so many.
static void what_has_four_gibibytes() {
  check::Database db = check::Open("limit-large");
  const Slice too_long("x", static_cast<size_t>(1) << 32);
  for (int kind = 0; kind < 3; kind++) {
    WriteBatch batch;
    batch.Put("before", "value");
    if (kind == 0) batch.Put(too_long, "value");
    if (kind == 1) batch.Put("key", too_long);
    if (kind == 2) batch.Delete(too_long);
    WriteBatch appended;
    appended.Append(batch);
    Counter counter;
    CHECK(appended.Iterate(&counter).IsInvalidArgument());
    CHECK_EQUAL(counter.operations, 1);
    CHECK(db->Write(WriteOptions(), &appended).IsInvalidArgument());
    CHECK_EQUAL(check::Get(db.get(), "before"), "NONE");
    appended.Clear();
    CHECK_OK(db->Write(WriteOptions(), &appended));
  }
}

// A batch that somebody has changed by hand is refused, wherever it was changed.
static void damaged_batches() {
  check::Database db = check::Open("limit-damage");
  WriteBatch whole;
  whole.Put("key", "value");
  whole.Delete("other");
  std::string* const bytes = WriteBatchInternal::Contents(&whole);
  const std::string good = *bytes;
  CHECK_EQUAL(good.size(), 8u + 4 + 1 + 1 + 3 + 1 + 5 + 1 + 1 + 5);
  CHECK_EQUAL(good[8], 2);
  for (size_t size = 0; size < good.size(); size++) {
    bytes->assign(good, 0, size);
    CHECK(db->Write(WriteOptions(), &whole).IsCorruption());
  }
  for (const auto& change :
       {std::make_pair(8, '\3'), std::make_pair(12, '\2'), std::make_pair(13, '\x7e'),
        std::make_pair(13, '\xff'), std::make_pair(17, '\x90'), std::make_pair(23, '\x01')}) {
    *bytes = good;
    (*bytes)[static_cast<size_t>(change.first)] = change.second;
    CHECK(db->Write(WriteOptions(), &whole).IsCorruption());
  }
  // A length that does not end, and one of more than 32 bits.
  *bytes = good.substr(0, 13) + "\xff\xff\xff\xff\xff\xff";
  CHECK(db->Write(WriteOptions(), &whole).IsCorruption());
  CHECK_EQUAL(check::All(db.get()), "");
  *bytes = good;
  CHECK_OK(db->Write(WriteOptions(), &whole));
  CHECK_EQUAL(check::All(db.get()), "key=value");
}

void limit_suite() {
  long_keys();
  what_has_four_gibibytes();
  damaged_batches();
}

static double Figure(DB* db, const char* name) {
  double number = -1;
  CHECK(tamarack_stats_number(tamarack::HandleOf(db), name, &number));
  return number;
}

// A derived class that is not Tamarack's.
class Other : public DB {
 public:
  Status Put(const WriteOptions&, const Slice&, const Slice&) override { return Status::OK(); }
  Status Delete(const WriteOptions&, const Slice&) override { return Status::OK(); }
  Status Write(const WriteOptions&, WriteBatch*) override { return Status::OK(); }
  Status Get(const ReadOptions&, const Slice& key, std::string*) override { return Status::NotFound(key); }
  Iterator* NewIterator(const ReadOptions&) override { return NewEmptyIterator(); }
  const Snapshot* GetSnapshot() override { return nullptr; }
  void ReleaseSnapshot(const Snapshot*) override {}
  bool GetProperty(const Slice&, std::string* value) override {
    *value = "says yes to all";
    return true;
  }
  void GetApproximateSizes(const Range*, int, uint64_t*) override {}
  void CompactRange(const Slice*, const Slice*) override {}
};

// Only writes that are to survive the machine wait for the device.
static void synced(DB* db) {
  WriteBatch batch;
  batch.Put("key", "value");
  for (bool sync : {false, true}) {
    WriteOptions options;
    options.sync = sync;
    const double before = Figure(db, "syncs");
    CHECK_OK(db->Put(options, "key", "value"));
    CHECK_OK(db->Write(options, &batch));
    CHECK_OK(db->Delete(options, "key"));
    CHECK_EQUAL(Figure(db, "syncs") - before, sync ? 3 : 0);
  }
}

void beyond_suite() {
  DB* opened = nullptr;
  CHECK_OK(tamarack::Open(check::Creating(), {{"inline_value_max", "0"}, {"memtable_bytes", "100000"}},
                          check::Fresh("beyond"), &opened));
  const check::Database db(opened);
  check::Put(db.get(), "key", "value");
  CHECK_EQUAL(Figure(db.get(), "flushes"), 0);
  CHECK_OK(db->Write(WriteOptions(), nullptr));
  CHECK_EQUAL(Figure(db.get(), "flushes"), 1);
  synced(db.get());
  char* error = nullptr;
  char* report = tamarack_gc(tamarack::HandleOf(db.get()), 0, &error);
  CHECK(error == nullptr && report != nullptr);
  leveldb_free(report);
  DB* refused = nullptr;
  const Status unknown =
      tamarack::Open(check::Creating(), {{"no_such_option", "1"}}, check::Fresh("beyond-2"), &refused);
  CHECK(unknown.IsInvalidArgument() && refused == nullptr);
  CHECK(unknown.ToString().find("no_such_option") != std::string::npos);
  Other other;
  CHECK(tamarack::HandleOf(&other) == nullptr);
}

// Iterators and snapshots may go after their database.
void lifetime_suite() {
  check::Database db = check::Open("lifetime");
  check::Put(db.get(), "key", "value");
  const check::Walk walk(db->NewIterator(ReadOptions()));
  db.reset();
  walk->SeekToFirst();
  CHECK_EQUAL(check::At(walk.get()), "key=value");
  // What stands nowhere lends nothing, and moves do nothing.
  walk->Next();
  walk->Next();
  walk->Prev();
  CHECK(!walk->Valid() && walk->key().empty() && walk->value().empty());
  CHECK_OK(walk->status());
}

// Changes every byte behind the first ones of a file.
static void Damage(const std::string& name) {
  std::FILE* file = std::fopen(name.c_str(), "r+b");
  CHECK(file != nullptr);
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  for (long at = 1000; at < size && at < 40000; at += 100) {
    std::fseek(file, at, SEEK_SET);
    std::fputs("damage", file);
  }
  std::fclose(file);
}

// Damage is told as such, by each way to read, and no wrong value is given.
static void damage_is_told_by_reads() {
  const std::string value(3000, 'v');
  {
    DB* opened = nullptr;
    CHECK_OK(tamarack::Open(check::Creating(), {{"segment_bytes_max", "100000"}, {"value_codec", "none"}},
                            check::Fresh("damage"), &opened));
    const check::Database db(opened);
    for (int number = 0; number < 100; number++) check::Put(db.get(), "key" + std::to_string(number), value);
    db->CompactRange(nullptr, nullptr);
  }
  check::Database db = check::Open("damage");
  // The first of several parts of the log, which nothing is written to any more.
  Damage(check::Fresh("damage/000001.vlog"));
  int damaged = 0;
  for (int number = 0; number < 100; number++) {
    std::string found;
    const Status status = db->Get(ReadOptions(), "key" + std::to_string(number), &found);
    CHECK(status.ok() ? found == value : status.IsCorruption());
    damaged += !status.ok();
  }
  CHECK(damaged > 0);
  const check::Walk walk(db->NewIterator(ReadOptions()));
  for (walk->SeekToFirst(); walk->Valid(); walk->Next()) {
    const Slice found = walk->value();
    CHECK(found == Slice(value) || (found.empty() && walk->status().IsCorruption() && !walk->Valid()));
  }
  CHECK(walk->status().IsCorruption());
}

// Opening reads all of it if it is to.
static void damage_is_found_by_opening() {
  Options options = check::Creating();
  DB* db = nullptr;
  options.paranoid_checks = true;
  const Status status = DB::Open(options, check::Fresh("damage"), &db);
  CHECK(status.IsCorruption() && db == nullptr);
  options.paranoid_checks = false;
  check::Open("damage", options);
}

void damage_suite() {
  damage_is_told_by_reads();
  damage_is_found_by_opening();
}
