// An iterator over nothing. Included by <leveldb/iterator.h> alone, behind its classes.

#ifndef TAMARACK_LEVELDB_NOWHERE_H
#define TAMARACK_LEVELDB_NOWHERE_H

#include <cassert>

#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace tamarack {
namespace leveldb_v1 {

class Nowhere final : public leveldb::Iterator {
 public:
  explicit Nowhere(const leveldb::Status& status) : status_(status) {}

  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const leveldb::Slice&) override {}
  void Next() override { assert(false && "the iterator stands nowhere"); }
  void Prev() override { assert(false && "the iterator stands nowhere"); }

  leveldb::Slice key() const override {
    assert(false && "the iterator stands nowhere");
    return leveldb::Slice();
  }

  leveldb::Slice value() const override {
    assert(false && "the iterator stands nowhere");
    return leveldb::Slice();
  }

  leveldb::Status status() const override { return status_; }

 private:
  const leveldb::Status status_;
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
