// Cache: what NewLRUCache keeps and forgets, and databases that are opened with one. What a cache forgets
// first is LevelDB's own affair, which has several lists; these hold for every list that forgets what was not
// used for long.

#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "leveldb/cache.h"

using namespace leveldb;

static std::vector<std::string> deleted;

static void Note(const Slice& key, void* value) {
  deleted.push_back(key.ToString() + "=" + *static_cast<std::string*>(value));
  delete static_cast<std::string*>(value);
}

static Cache::Handle* Insert(Cache* cache, const Slice& key, const char* value, size_t charge = 1) {
  return cache->Insert(key, new std::string(value), charge, &Note);
}

static std::string Find(Cache* cache, const Slice& key) {
  Cache::Handle* handle = cache->Lookup(key);
  if (handle == nullptr) return "NONE";
  const std::string value = *static_cast<std::string*>(cache->Value(handle));
  cache->Release(handle);
  return value;
}

static void entries() {
  deleted.clear();
  std::unique_ptr<Cache> cache(NewLRUCache(1000));
  CHECK_EQUAL(Find(cache.get(), "a"), "NONE");
  cache->Release(Insert(cache.get(), "a", "1"));
  cache->Release(Insert(cache.get(), Slice("a\0b", 3), "2"));
  CHECK_EQUAL(Find(cache.get(), "a"), "1");
  CHECK_EQUAL(Find(cache.get(), Slice("a\0b", 3)), "2");
  CHECK_EQUAL(cache->TotalCharge(), 2u);
  cache->Release(Insert(cache.get(), "a", "3"));
  CHECK_EQUAL(Find(cache.get(), "a"), "3");
  CHECK(deleted == std::vector<std::string>{"a=1"});
  cache->Erase("a");
  cache->Erase("a");
  CHECK_EQUAL(Find(cache.get(), "a"), "NONE");
  CHECK_EQUAL(deleted.back(), "a=3");
  CHECK_EQUAL(cache->TotalCharge(), 1u);
  cache.reset();
  CHECK_EQUAL(deleted.size(), 3u);
  CHECK_EQUAL(deleted.back(), std::string("a\0b=2", 5));
}

static void held_entries_stay() {
  deleted.clear();
  const std::unique_ptr<Cache> cache(NewLRUCache(1000));
  Cache::Handle* first = Insert(cache.get(), "a", "1");
  Cache::Handle* second = cache->Lookup("a");
  Cache::Handle* replaced = Insert(cache.get(), "a", "2");
  CHECK_EQUAL(*static_cast<std::string*>(cache->Value(second)), "1");
  cache->Release(first);
  CHECK(deleted.empty());
  cache->Release(second);
  CHECK_EQUAL(deleted.back(), "a=1");
  cache->Erase("a");
  CHECK_EQUAL(Find(cache.get(), "a"), "NONE");
  CHECK_EQUAL(*static_cast<std::string*>(cache->Value(replaced)), "2");
  cache->Release(replaced);
  CHECK_EQUAL(deleted.back(), "a=2");
  Cache::Handle* held = Insert(cache.get(), "held", "h");
  cache->Release(Insert(cache.get(), "idle", "i"));
  cache->Prune();
  CHECK_EQUAL(deleted.back(), "idle=i");
  CHECK_EQUAL(Find(cache.get(), "held"), "h");
  cache->Release(held);
  CHECK_EQUAL(Find(cache.get(), "held"), "h");
}

static void what_was_not_used_for_long_is_forgotten() {
  const std::unique_ptr<Cache> cache(NewLRUCache(1000));
  cache->Release(Insert(cache.get(), "used", "u"));
  Cache::Handle* held = Insert(cache.get(), "held", "h");
  cache->Release(Insert(cache.get(), "old", "o"));
  for (int number = 0; number < 3000; number++) {
    cache->Release(Insert(cache.get(), std::to_string(number), "x"));
    CHECK_EQUAL(Find(cache.get(), std::to_string(number)), "x");
    CHECK_EQUAL(Find(cache.get(), "used"), "u");
  }
  CHECK_EQUAL(Find(cache.get(), "old"), "NONE");
  CHECK_EQUAL(Find(cache.get(), "held"), "h");
  CHECK(cache->TotalCharge() <= 1100 && cache->TotalCharge() > 500);
  // Too large for all of it, but in somebody's hands.
  Cache::Handle* large = Insert(cache.get(), "large", "l", 5000);
  CHECK_EQUAL(*static_cast<std::string*>(cache->Value(large)), "l");
  cache->Release(large);
  cache->Release(held);
  cache->Release(Insert(cache.get(), "large", "l", 1));
  CHECK(cache->TotalCharge() <= 1100);
}

static void nothing_is_kept_without_capacity() {
  deleted.clear();
  const std::unique_ptr<Cache> cache(NewLRUCache(0));
  Cache::Handle* handle = Insert(cache.get(), "a", "1");
  CHECK_EQUAL(*static_cast<std::string*>(cache->Value(handle)), "1");
  CHECK_EQUAL(Find(cache.get(), "a"), "NONE");
  cache->Release(handle);
  CHECK_EQUAL(deleted.size(), 1u);
}

static void numbers() {
  const std::unique_ptr<Cache> cache(NewLRUCache(10));
  const uint64_t first = cache->NewId();
  CHECK(first != cache->NewId());
}

static void in_databases() {
  const std::unique_ptr<Cache> cache(NewLRUCache(1 << 20));
  Options options = check::Creating();
  options.block_cache = cache.get();
  check::Database first = check::Open("cache-1", options), second = check::Open("cache-2", options);
  check::Put(first.get(), "key", "1");
  check::Put(second.get(), "key", "2");
  first->CompactRange(nullptr, nullptr);
  second->CompactRange(nullptr, nullptr);
  CHECK_EQUAL(check::Get(first.get(), "key"), "1");
  CHECK_EQUAL(check::Get(second.get(), "key"), "2");
}

void cache_suite() {
  entries();
  held_entries_stay();
  what_was_not_used_for_long_is_forgotten();
  nothing_is_kept_without_capacity();
  numbers();
  in_databases();
}
