// The cache of leveldb::NewLRUCache, and how DB::Open learns its capacity. Included by <leveldb/cache.h>
// alone, behind its classes.
//
// Tamarack caches index blocks by itself; this holds what a program puts into it. One lock guards all.
// Deleters run outside it, so they may use the cache.
//
// An entry counts its holders: each handle that was given out, and the cache. The list holds the entries that
// the cache alone has, those used longest ago in front; they are what it may forget.

#ifndef TAMARACK_LEVELDB_LRU_CACHE_H
#define TAMARACK_LEVELDB_LRU_CACHE_H

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "leveldb/slice.h"

namespace tamarack {
namespace leveldb_v1 {

// The capacity has no function of its own in leveldb::Cache; a cache of NewLRUCache's has it under this key.
inline leveldb::Slice CapacityKey() { return leveldb::Slice("\0tamarack: capacity\0", 20); }

class LruCache final : public leveldb::Cache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity), charge_(0), last_id_(0) {
    tells_capacity_.value = &capacity_;
    tells_capacity_.holders = 1;
  }

  ~LruCache() override {
    for (auto& pair : entries_) {
      assert(pair.second->holders == 1 && "a handle was not released");
      Delete(pair.second);
    }
  }

  Handle* Insert(const leveldb::Slice& key, void* value, size_t charge,
                 void (*deleter)(const leveldb::Slice& key, void* value)) override {
    Entry* entry = new Entry;
    entry->key = key.ToString();
    entry->value = value;
    entry->deleter = deleter;
    entry->charge = charge;
    entry->holders = 1;
    std::vector<Entry*> gone;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto before = entries_.find(entry->key);
      if (before != entries_.end()) Forget(before, &gone);
      // Without a capacity it holds nothing, and only the caller has the entry.
      if (capacity_ > 0) {
        entries_.emplace(entry->key, entry);
        entry->cached = true;
        entry->holders++;
        charge_ += charge;
      }
      while (charge_ > capacity_ && !idle_.empty()) Forget(entries_.find(idle_.front()->key), &gone);
    }
    Delete(gone);
    return entry;
  }

  Handle* Lookup(const leveldb::Slice& key) override {
    std::lock_guard<std::mutex> lock(mutex_);
    Entry* entry = nullptr;
    if (key == CapacityKey()) {
      entry = &tells_capacity_;
    } else {
      const auto found = entries_.find(key.ToString());
      if (found == entries_.end()) return nullptr;
      entry = found->second;
      // Now somebody has it in hands.
      if (entry->holders == 1) idle_.erase(entry->place);
    }
    entry->holders++;
    return entry;
  }

  void Release(Handle* handle) override {
    Entry* entry = static_cast<Entry*>(handle);
    std::vector<Entry*> gone;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      Drop(entry, &gone);
      if (entry->cached && entry->holders == 1) {
        entry->place = idle_.insert(idle_.end(), entry);
        // What was in hands may have kept it above its capacity.
        while (charge_ > capacity_ && !idle_.empty()) Forget(entries_.find(idle_.front()->key), &gone);
      }
    }
    Delete(gone);
  }

  void* Value(Handle* handle) override { return static_cast<Entry*>(handle)->value; }

  void Erase(const leveldb::Slice& key) override {
    std::vector<Entry*> gone;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto found = entries_.find(key.ToString());
      if (found != entries_.end()) Forget(found, &gone);
    }
    Delete(gone);
  }

  uint64_t NewId() override {
    std::lock_guard<std::mutex> lock(mutex_);
    return ++last_id_;
  }

  void Prune() override {
    std::vector<Entry*> gone;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      while (!idle_.empty()) Forget(entries_.find(idle_.front()->key), &gone);
    }
    Delete(gone);
  }

  size_t TotalCharge() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return charge_;
  }

 private:
  struct Entry : public Handle {
    std::string key;
    void* value = nullptr;
    void (*deleter)(const leveldb::Slice& key, void* value) = nullptr;
    size_t charge = 0;
    size_t holders = 0;
    // Whether the cache is one of the holders.
    bool cached = false;
    // Where it is in the list, if the cache is the only one.
    std::list<Entry*>::iterator place;
  };
  using Entries = std::unordered_map<std::string, Entry*>;

  // Takes an entry out of the cache. Those that nobody has any more are put into gone.
  void Forget(Entries::iterator found, std::vector<Entry*>* gone) {
    Entry* entry = found->second;
    if (entry->holders == 1) idle_.erase(entry->place);
    entries_.erase(found);
    entry->cached = false;
    charge_ -= entry->charge;
    Drop(entry, gone);
  }

  static void Drop(Entry* entry, std::vector<Entry*>* gone) {
    assert(entry->holders > 0);
    if (--entry->holders == 0) gone->push_back(entry);
  }

  static void Delete(Entry* entry) {
    if (entry->deleter != nullptr) entry->deleter(entry->key, entry->value);
    delete entry;
  }

  static void Delete(const std::vector<Entry*>& gone) {
    for (Entry* entry : gone) Delete(entry);
  }

  size_t capacity_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::list<Entry*> idle_;
  size_t charge_;
  uint64_t last_id_;
  Entry tells_capacity_;
};

// Whether the capacity of a cache is known, and what it is. A program's own kind of cache does not tell.
inline bool CapacityOf(leveldb::Cache* cache, size_t* capacity) {
  leveldb::Cache::Handle* handle = cache->Lookup(CapacityKey());
  if (handle == nullptr) return false;
  *capacity = *static_cast<const size_t*>(cache->Value(handle));
  cache->Release(handle);
  return true;
}

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
