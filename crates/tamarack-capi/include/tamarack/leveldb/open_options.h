// leveldb::Options as those of the C interface. Part of what is behind <leveldb/db.h>.
//
// Every field is looked at: what has a counterpart is handed on, and what would make a program's data lie
// somewhere else than it says is refused. docs/LEVELDB.md lists what has no effect.

#ifndef TAMARACK_LEVELDB_OPEN_OPTIONS_H
#define TAMARACK_LEVELDB_OPEN_OPTIONS_H

#include <cstddef>
#include <map>
#include <string>

#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/options.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "tamarack/leveldb/c_objects.h"

namespace tamarack {
namespace leveldb_v1 {

// A program's order as functions of C. The order must outlive the database, as in LevelDB.
class OrderFunctions {
 public:
  static leveldb_comparator_t* Create(const leveldb::Comparator* order) {
    return leveldb_comparator_create(const_cast<leveldb::Comparator*>(order), nullptr, &Compare, &Name);
  }

 private:
  // An exception must not pass through functions that are not C++.
  static int Compare(void* order, const char* a, size_t a_size, const char* b, size_t b_size) noexcept {
    return static_cast<const leveldb::Comparator*>(order)->Compare(leveldb::Slice(a, a_size),
                                                                   leveldb::Slice(b, b_size));
  }

  static const char* Name(void* order) noexcept {
    return static_cast<const leveldb::Comparator*>(order)->Name();
  }
};

class OpenOptions {
 public:
  OpenOptions() : options_(leveldb_options_create()) {}

  // What LevelDB has.
  leveldb::Status Set(const leveldb::Options& options) {
    if (options.env != nullptr && options.env != leveldb::Env::Default()) {
      return leveldb::Status::NotSupported("Options::env is not Env::Default()",
                                           "Tamarack keeps its files in directories of the operating system");
    }
    leveldb_options_t* const to = options_.get();
    leveldb_options_set_create_if_missing(to, options.create_if_missing);
    leveldb_options_set_error_if_exists(to, options.error_if_exists);
    leveldb_options_set_paranoid_checks(to, options.paranoid_checks);
    leveldb_options_set_write_buffer_size(to, options.write_buffer_size);
    leveldb_options_set_max_open_files(to, options.max_open_files);
    leveldb_options_set_block_size(to, options.block_size);
    leveldb_options_set_block_restart_interval(to, options.block_restart_interval);
    leveldb_options_set_max_file_size(to, options.max_file_size);
    leveldb_options_set_compression(to, static_cast<int>(options.compression));
    SetOrder(options.comparator);
    SetCache(options.block_cache);
    SetFilter(options.filter_policy);
    return leveldb::Status::OK();
  }

  // What Tamarack has, by its names.
  leveldb::Status Set(const std::map<std::string, std::string>& settings) {
    for (const auto& setting : settings) {
      Failure failure;
      tamarack_options_set(options_.get(), setting.first.c_str(), setting.second.c_str(), failure.pointer());
      if (!failure.status().ok()) return failure.status();
    }
    return leveldb::Status::OK();
  }

  const leveldb_options_t* get() const { return options_.get(); }

 private:
  void SetOrder(const leveldb::Comparator* order) {
    // Tamarack compares bytes by itself, which is faster, and has filters then.
    if (order == nullptr || order == leveldb::BytewiseComparator()) return;
    order_.reset(OrderFunctions::Create(order));
    leveldb_options_set_comparator(options_.get(), order_.get());
  }

  void SetCache(leveldb::Cache* cache) {
    size_t capacity = 0;
    if (cache == nullptr || !CapacityOf(cache, &capacity)) return;
    const Owned<leveldb_cache_t> size(leveldb_cache_create_lru(capacity));
    leveldb_options_set_cache(options_.get(), size.get());
  }

  void SetFilter(const leveldb::FilterPolicy* policy) {
    const int bits = policy == nullptr ? -1 : BloomBits(*policy);
    if (bits < 0) return;
    const Owned<leveldb_filterpolicy_t> bloom(leveldb_filterpolicy_create_bloom(bits));
    leveldb_options_set_filter_policy(options_.get(), bloom.get());
  }

  Owned<leveldb_options_t> options_;
  // A database that is open with it holds it by itself.
  Owned<leveldb_comparator_t> order_;
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
