// An open database as a leveldb::DB, and what is done with one that is not open. Included by <leveldb/db.h>
// alone, behind its classes.
//
// Nothing is decided here: each function calls one of the C interface and says what came of it.

#ifndef TAMARACK_LEVELDB_DATABASE_H
#define TAMARACK_LEVELDB_DATABASE_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "leveldb/env.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "tamarack/leveldb/c_objects.h"
#include "tamarack/leveldb/open_options.h"
#include "tamarack/leveldb/reading.h"

namespace tamarack {
namespace leveldb_v1 {

// Tamarack's own options by name.
using Settings = std::map<std::string, std::string>;

// The property whose value is the address of the C interface's object, for <tamarack/db.h>: it tells
// Tamarack's databases from other classes derived from leveldb::DB, whoever has compiled them.
inline leveldb::Slice HandleProperty() { return "tamarack.c-handle"; }

// A write batch of C's, filled from one of C++'s.
class BatchCopy final : public leveldb::WriteBatch::Handler {
 public:
  BatchCopy() : batch_(leveldb_writebatch_create()) {}

  void Put(const leveldb::Slice& key, const leveldb::Slice& value) override {
    leveldb_writebatch_put(batch_.get(), key.data(), key.size(), value.data(), value.size());
  }
  void Delete(const leveldb::Slice& key) override {
    leveldb_writebatch_delete(batch_.get(), key.data(), key.size());
  }

  leveldb_writebatch_t* get() const { return batch_.get(); }

 private:
  const Owned<leveldb_writebatch_t> batch_;
};

// Only names without zeros reach the file system whole.
inline leveldb::Status CheckName(const std::string& name) {
  if (name.find('\0') == std::string::npos) return leveldb::Status::OK();
  return leveldb::Status::InvalidArgument("the name of a database has a zero in it");
}

class Database final : public leveldb::DB {
 public:
  static leveldb::Status Open(const leveldb::Options& options, const std::string& name, leveldb::DB** dbptr,
                              const Settings& settings = Settings()) {
    *dbptr = nullptr;
    OpenOptions to_open;
    leveldb::Status status = CheckName(name);
    if (status.ok()) status = to_open.Set(options);
    if (status.ok()) status = to_open.Set(settings);
    if (!status.ok()) return status;
    Failure failure;
    Owned<leveldb_t> db(leveldb_open(to_open.get(), name.c_str(), failure.pointer()));
    if (db == nullptr) return failure.status();
    *dbptr = new Database(db.get(), name, options.info_log);
    db.release();
    return leveldb::Status::OK();
  }

  ~Database() override {
    Failure failure;
    tamarack_close(db_, failure.pointer());
    Note("closing", failure.status());
  }

  leveldb::Status Put(const leveldb::WriteOptions& options, const leveldb::Slice& key,
                      const leveldb::Slice& value) override {
    Failure failure;
    leveldb_put(db_, For(options), key.data(), key.size(), value.data(), value.size(), failure.pointer());
    return failure.status();
  }

  leveldb::Status Delete(const leveldb::WriteOptions& options, const leveldb::Slice& key) override {
    Failure failure;
    leveldb_delete(db_, For(options), key.data(), key.size(), failure.pointer());
    return failure.status();
  }

  leveldb::Status Write(const leveldb::WriteOptions& options, leveldb::WriteBatch* updates) override {
    Failure failure;
    if (updates == nullptr) {
      tamarack_flush(db_, failure.pointer());
      return failure.status();
    }
    BatchCopy copy;
    const leveldb::Status status = updates->Iterate(&copy);
    if (!status.ok()) return status;
    leveldb_write(db_, For(options), copy.get(), failure.pointer());
    return failure.status();
  }

  leveldb::Status Get(const leveldb::ReadOptions& options, const leveldb::Slice& key,
                      std::string* value) override {
    Failure failure;
    size_t size = 0;
    const Owned<char> found(
        leveldb_get(db_, For(options), key.data(), key.size(), &size, failure.pointer()));
    if (found == nullptr) {
      const leveldb::Status status = failure.status();
      return status.ok() ? leveldb::Status::NotFound(leveldb::Slice()) : status;
    }
    value->assign(found.get(), size);
    return leveldb::Status::OK();
  }

  leveldb::Iterator* NewIterator(const leveldb::ReadOptions& options) override {
    return new Walk(leveldb_create_iterator(db_, For(options)));
  }

  const leveldb::Snapshot* GetSnapshot() override { return new Moment(db_); }

  void ReleaseSnapshot(const leveldb::Snapshot* snapshot) override {
    delete static_cast<const Moment*>(snapshot);
  }

  bool GetProperty(const leveldb::Slice& property, std::string* value) override {
    value->clear();
    if (property == HandleProperty()) {
      value->assign(reinterpret_cast<const char*>(&db_), sizeof db_);
      return true;
    }
    const std::string name = property.ToString();
    if (name.find('\0') != std::string::npos) return false;
    const Owned<char> text(leveldb_property_value(db_, name.c_str()));
    if (text == nullptr) return false;
    value->assign(text.get());
    return true;
  }

  void GetApproximateSizes(const leveldb::Range* range, int n, uint64_t* sizes) override {
    const size_t count = n < 0 ? 0 : static_cast<size_t>(n);
    std::vector<const char*> starts, limits;
    std::vector<size_t> start_sizes, limit_sizes;
    for (size_t index = 0; index < count; index++) {
      starts.push_back(range[index].start.data());
      start_sizes.push_back(range[index].start.size());
      limits.push_back(range[index].limit.data());
      limit_sizes.push_back(range[index].limit.size());
    }
    if (count == 0) return;
    leveldb_approximate_sizes(db_, n, starts.data(), start_sizes.data(), limits.data(), limit_sizes.data(),
                              sizes);
  }

  void CompactRange(const leveldb::Slice* begin, const leveldb::Slice* end) override {
    Failure failure;
    tamarack_compact_range(db_, Bound(begin), begin == nullptr ? 0 : begin->size(), Bound(end),
                           end == nullptr ? 0 : end->size(), failure.pointer());
    Note("CompactRange", failure.status());
  }

 private:
  Database(leveldb_t* db, const std::string& name, leveldb::Logger* log)
      : db_(db),
        name_(name),
        log_(log),
        at_present_(nullptr),
        plain_(leveldb_writeoptions_create()),
        synced_(leveldb_writeoptions_create()) {
    leveldb_writeoptions_set_sync(synced_.get(), 1);
    if (log_ == nullptr) return;
    char* recovery = tamarack_recovery(db_);
    leveldb::Log(log_, "Tamarack %s opened %s; recovery: %s", tamarack_version(), name_.c_str(), recovery);
    leveldb_free(recovery);
  }

  const leveldb_readoptions_t* For(const leveldb::ReadOptions& options) const {
    if (options.snapshot == nullptr) return at_present_.For(options);
    return static_cast<const Moment*>(options.snapshot)->choices().For(options);
  }

  const leveldb_writeoptions_t* For(const leveldb::WriteOptions& options) const {
    return options.sync ? synced_.get() : plain_.get();
  }

  // NULL is no bound, and an empty key may have no address.
  static const char* Bound(const leveldb::Slice* key) {
    if (key == nullptr) return nullptr;
    return key->data() == nullptr ? "" : key->data();
  }

  // Tells the log what a function cannot.
  void Note(const char* what, const leveldb::Status& status) const {
    if (!status.ok()) leveldb::Log(log_, "%s: %s: %s", name_.c_str(), what, status.ToString().c_str());
  }

  leveldb_t* const db_;
  const std::string name_;
  leveldb::Logger* const log_;
  const ReadChoices at_present_;
  const Owned<leveldb_writeoptions_t> plain_;
  const Owned<leveldb_writeoptions_t> synced_;
};

// Calls a function for the directory of a database that is not open.
inline leveldb::Status WithDirectory(const leveldb::Options& options, const std::string& name,
                                     void (*function)(const leveldb_options_t*, const char*, char**)) {
  OpenOptions to_open;
  leveldb::Status status = CheckName(name);
  if (status.ok()) status = to_open.Set(options);
  if (!status.ok()) return status;
  Failure failure;
  function(to_open.get(), name.c_str(), failure.pointer());
  return failure.status();
}

inline leveldb::Status Destroy(const leveldb::Options& options, const std::string& name) {
  return WithDirectory(options, name, &leveldb_destroy_db);
}

inline leveldb::Status Repair(const leveldb::Options& options, const std::string& name) {
  return WithDirectory(options, name, &leveldb_repair_db);
}

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
