// Read options, snapshots and iterators over the C interface. Part of what is behind <leveldb/db.h>.

#ifndef TAMARACK_LEVELDB_READING_H
#define TAMARACK_LEVELDB_READING_H

#include <cstddef>

#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "tamarack/leveldb/c_objects.h"

namespace tamarack {
namespace leveldb_v1 {

// All read options that there can be for one moment, so that a read makes none. Threads may share them.
class ReadChoices {
 public:
  // For the moment of a snapshot, which must outlive this; NULL: the present.
  explicit ReadChoices(const leveldb_snapshot_t* snapshot) {
    for (size_t index = 0; index < 4; index++) {
      choices_[index].reset(leveldb_readoptions_create());
      leveldb_readoptions_set_verify_checksums(choices_[index].get(), (index & kVerify) != 0);
      leveldb_readoptions_set_fill_cache(choices_[index].get(), (index & kFill) != 0);
      leveldb_readoptions_set_snapshot(choices_[index].get(), snapshot);
    }
  }

  const leveldb_readoptions_t* For(const leveldb::ReadOptions& options) const {
    const size_t index = (options.verify_checksums ? kVerify : 0) | (options.fill_cache ? kFill : 0);
    return choices_[index].get();
  }

 private:
  static const size_t kVerify = 1;
  static const size_t kFill = 2;

  Owned<leveldb_readoptions_t> choices_[4];
};

// A moment of a database.
class Moment final : public leveldb::Snapshot {
 public:
  explicit Moment(leveldb_t* db) : db_(db), snapshot_(leveldb_create_snapshot(db)), choices_(snapshot_) {}
  ~Moment() override { leveldb_release_snapshot(db_, snapshot_); }

  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  const ReadChoices& choices() const { return choices_; }

 private:
  leveldb_t* const db_;
  const leveldb_snapshot_t* const snapshot_;
  const ReadChoices choices_;
};

class Walk final : public leveldb::Iterator {
 public:
  // Takes the iterator over.
  explicit Walk(leveldb_iterator_t* iterator) : iterator_(iterator) {}

  bool Valid() const override { return leveldb_iter_valid(iterator_.get()) != 0; }
  void SeekToFirst() override { leveldb_iter_seek_to_first(iterator_.get()); }
  void SeekToLast() override { leveldb_iter_seek_to_last(iterator_.get()); }
  void Seek(const leveldb::Slice& target) override {
    leveldb_iter_seek(iterator_.get(), target.data(), target.size());
  }
  void Next() override { leveldb_iter_next(iterator_.get()); }
  void Prev() override { leveldb_iter_prev(iterator_.get()); }

  leveldb::Slice key() const override {
    size_t size = 0;
    const char* key = leveldb_iter_key(iterator_.get(), &size);
    return SliceOf(key, size);
  }

  leveldb::Slice value() const override {
    size_t size = 0;
    const char* value = leveldb_iter_value(iterator_.get(), &size);
    return SliceOf(value, size);
  }

  leveldb::Status status() const override {
    Failure failure;
    leveldb_iter_get_error(iterator_.get(), failure.pointer());
    return failure.status();
  }

 private:
  const Owned<leveldb_iterator_t> iterator_;
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
