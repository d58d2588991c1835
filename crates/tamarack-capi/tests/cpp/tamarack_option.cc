// Options: what their defaults are, which reach the database, what is refused, and who is told what.

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "check.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "tamarack/db.h"

using namespace leveldb;

// A program in Rust compares these with Tamarack's own.
void default_suite() {
  const Options options;
  CHECK(options.comparator == BytewiseComparator() && options.env == Env::Default());
  CHECK(!options.create_if_missing && !options.error_if_exists && !options.paranoid_checks &&
        !options.reuse_logs);
  CHECK(options.info_log == nullptr && options.block_cache == nullptr && options.filter_policy == nullptr);
  CHECK_EQUAL(options.compression, kSnappyCompression);
  CHECK(ReadOptions().verify_checksums && ReadOptions().fill_cache && ReadOptions().snapshot == nullptr);
  CHECK(!WriteOptions().sync);
  std::cout << "defaults: write_buffer_size " << options.write_buffer_size << " max_open_files "
            << options.max_open_files << " block_size " << options.block_size << " max_file_size "
            << options.max_file_size << std::endl;
}

static double Figure(DB* db, const char* name) {
  double number = -1;
  CHECK(tamarack_stats_number(tamarack::HandleOf(db), name, &number));
  return number;
}

// How many bytes of the filters there are for each of many keys, with these options.
static double FilterBits(const Options& options, const std::string& name) {
  check::Database db = check::Open(name, options);
  const int keys = 20000;
  for (int number = 0; number < keys; number++) check::Put(db.get(), "key" + std::to_string(number), "");
  db->CompactRange(nullptr, nullptr);
  // Tables hold little else that depends on the policy.
  return Figure(db.get(), "table_bytes") * 8 / keys;
}

static void filters() {
  const std::unique_ptr<const FilterPolicy> none(NewBloomFilterPolicy(0)), many(NewBloomFilterPolicy(20));
  Options options = check::Creating();
  const double unset = FilterBits(options, "filter-unset");
  options.filter_policy = none.get();
  const double without = FilterBits(options, "filter-without");
  options.filter_policy = many.get();
  const double large = FilterBits(options, "filter-many");
  CHECK(unset > without + 8 && unset < without + 13);
  CHECK(large > without + 18 && large < without + 24);
}

// How many bytes the cache of a database holds when far more than 100,000 have been read.
static double Cached(const Options& options, const std::string& name) {
  check::Database db = check::Open(name, options);
  for (int number = 0; number < 20000; number++)
    check::Put(db.get(), "key" + std::to_string(number * 7919), "");
  db->CompactRange(nullptr, nullptr);
  for (int number = 0; number < 20000; number += 10) {
    CHECK_EQUAL(check::Get(db.get(), "key" + std::to_string(number * 7919)), "");
  }
  return Figure(db.get(), "block_cache.bytes");
}

static void caches() {
  Options options = check::Creating();
  options.compression = kNoCompression;
  CHECK(Cached(options, "cache-default") > 200000);
  const std::unique_ptr<Cache> cache(NewLRUCache(50000));
  options.block_cache = cache.get();
  const double cached = Cached(options, "cache-own");
  CHECK(cached > 0 && cached <= 50000);
  // It is the database's own, and this one still the program's.
  CHECK_EQUAL(cache->TotalCharge(), 0u);
}

// A database with so many entries, all of them in tables, and their values with them.
static check::Database Filled(const Options& options, const std::string& name, int entries) {
  check::Database db = check::Open(name, options);
  const std::string value(500, 'v');
  for (int number = 0; number < entries; number++) {
    check::Put(db.get(), "key" + std::to_string(1000000 + number), value);
  }
  CHECK_OK(db->Write(WriteOptions(), nullptr));
  char* error = nullptr;
  tamarack_wait_idle(tamarack::HandleOf(db.get()), &error);
  CHECK(error == nullptr);
  return db;
}

static int Tables(DB* db) {
  int tables = 0;
  for (int level = 0; level < 7; level++) {
    std::string value;
    CHECK(db->GetProperty("leveldb.num-files-at-level" + std::to_string(level), &value));
    tables += std::stoi(value);
  }
  return tables;
}

// Each size that is set is that of the database.
static void sizes() {
  Options options = check::Creating();
  options.compression = kNoCompression;
  const int entries = 90000, step = 100;
  double flushes[2], block_reads[2], tables[2], open_tables[2];
  for (int small = 0; small < 2; small++) {
    options.write_buffer_size = small == 1 ? 1 << 20 : 64 << 20;
    options.max_file_size = small == 1 ? 100 << 10 : 64 << 20;
    options.block_size = small == 1 ? 1 << 10 : 256 << 10;
    options.max_open_files = small == 1 ? 1 : 1000;
    check::Database db = Filled(options, small == 1 ? "sizes-small" : "sizes-large", entries);
    flushes[small] = Figure(db.get(), "flushes");
    db->CompactRange(nullptr, nullptr);
    tables[small] = Tables(db.get());
    db.reset();
    // Opened again, it has read no block yet.
    db = check::Open(small == 1 ? "sizes-small" : "sizes-large", options);
    for (int number = 0; number < entries; number += step)
      check::Get(db.get(), "key" + std::to_string(1000000 + number));
    block_reads[small] = Figure(db.get(), "block_cache.misses");
    open_tables[small] = Figure(db.get(), "open_tables");
  }
  CHECK(flushes[0] == 1 && flushes[1] > 20);
  CHECK(tables[0] == 1 && tables[1] > 40);
  // Each block is read once for all of its keys.
  CHECK(block_reads[1] > 3 * block_reads[0]);
  // Half of the 74 files that there are at least are for tables.
  CHECK(open_tables[1] == 37);
}

static void compressions() {
  const std::string compresses(100000, 'x');
  double bytes[3];
  for (int number = 0; number < 3; number++) {
    Options options = check::Creating();
    // Zstandard has a number, and a name only in later versions of LevelDB.
    options.compression = static_cast<CompressionType>(number);
    check::Database db = check::Open("compression" + std::to_string(number), options);
    check::Put(db.get(), "key", compresses);
    CHECK(check::Get(db.get(), "key") == compresses);
    CHECK_OK(db->Write(WriteOptions(), nullptr));
    bytes[number] = Figure(db.get(), "live_value_bytes");
  }
  CHECK(bytes[0] >= 100000 && bytes[1] < 10000 && bytes[2] < 10000 && bytes[1] != bytes[2]);
  Options options = check::Creating();
  options.compression = static_cast<CompressionType>(3);
  DB* db = nullptr;
  const Status status = DB::Open(options, check::Fresh("compression3"), &db);
  CHECK(status.IsInvalidArgument() && db == nullptr);
}

// A program's own Env would not be asked, so nothing is done with it.
static void another_env_is_refused() {
  EnvWrapper env(Env::Default());
  Options options = check::Creating();
  options.env = &env;
  DB* db = nullptr;
  Status status = DB::Open(options, check::Fresh("env"), &db);
  CHECK(status.IsNotSupportedError() && db == nullptr && !Env::Default()->FileExists(check::Fresh("env")));
  CHECK(status.ToString().find("Env::Default()") != std::string::npos);
  check::Put(check::Open("env").get(), "key", "value");
  CHECK(RepairDB(check::Fresh("env"), options).IsNotSupportedError());
  CHECK(DestroyDB(check::Fresh("env"), options).IsNotSupportedError());
  options.env = nullptr;
  options.comparator = nullptr;
  CHECK_EQUAL(check::Get(check::Open("env", options).get(), "key"), "value");
}

static void a_name_with_a_zero_is_refused() {
  DB* db = nullptr;
  const std::string name = check::Fresh("zero") + std::string("\0x", 2);
  CHECK(DB::Open(check::Creating(), name, &db).IsInvalidArgument() && db == nullptr);
  CHECK(DestroyDB(name, Options()).IsInvalidArgument() && RepairDB(name, Options()).IsInvalidArgument());
}

void option_suite() {
  filters();
  caches();
  sizes();
  compressions();
  another_env_is_refused();
  a_name_with_a_zero_is_refused();
}

class Lines : public Logger {
 public:
  void Logv(const char* format, std::va_list arguments) override {
    char line[2000];
    std::vsnprintf(line, sizeof line, format, arguments);
    lines += std::string(line) + "\n";
  }
  std::string lines;
};

// The log of a program hears what opening found, and what functions cannot tell.
void told_suite() {
  Lines log;
  Options options = check::Creating();
  options.info_log = &log;
  check::Put(check::Open("told", options).get(), "key", "value");
  check::Database db = check::Open("told", options);
  CHECK(log.lines.find("opened " + check::Fresh("told") + "; recovery: {") != std::string::npos);
  CHECK(log.lines.find("\"operations\":1") != std::string::npos);
  Log(&log, "%s", "by the program");
  Log(nullptr, "%s", "to nobody");
  CHECK(log.lines.find("by the program") != std::string::npos);
  db.reset();
  // A compaction has no other way to tell that it fails.
  DB* opened = nullptr;
  CHECK_OK(tamarack::Open(options, {{"read_only", "true"}}, check::Fresh("told"), &opened));
  db.reset(opened);
  log.lines.clear();
  db->CompactRange(nullptr, nullptr);
  CHECK(log.lines.find("CompactRange: ") != std::string::npos);
}

// Caches and filters of a program's own are not asked for anything but what says how large they are.
class OwnCache : public Cache {
 public:
  Handle* Insert(const Slice&, void*, size_t, void (*)(const Slice&, void*)) override { std::abort(); }
  Handle* Lookup(const Slice&) override { return nullptr; }
  void Release(Handle*) override { std::abort(); }
  void* Value(Handle*) override { std::abort(); }
  void Erase(const Slice&) override { std::abort(); }
  uint64_t NewId() override { std::abort(); }
  size_t TotalCharge() const override { std::abort(); }
};

class OwnFilter : public FilterPolicy {
 public:
  const char* Name() const override { return "test.OwnFilter"; }
  void CreateFilter(const Slice*, int, std::string*) const override { std::abort(); }
  bool KeyMayMatch(const Slice&, const Slice&) const override { std::abort(); }
};

void unknown_suite() {
  OwnCache cache;
  const OwnFilter filter;
  Options options = check::Creating();
  options.block_cache = &cache;
  options.filter_policy = &filter;
  options.compression = kNoCompression;
  CHECK(Cached(options, "unknown") > 200000);
}
