// leveldb::Slice: a pointer to bytes of somebody else, and their number.
//
// It owns nothing: who makes one sees to it that the bytes stay as long as it is used. Several threads may
// read one; changing one while others use it needs a lock.

#ifndef TAMARACK_LEVELDB_SLICE_H
#define TAMARACK_LEVELDB_SLICE_H

#include <cassert>
#include <cstddef>
#include <cstring>
#include <string>

#include "leveldb/export.h"

namespace leveldb {

class LEVELDB_EXPORT Slice {
 public:
  Slice() : data_(""), size_(0) {}
  Slice(const char* data, size_t size) : data_(data), size_(size) {}
  // These two convert, so that texts can be passed for keys and values. Bytes behind a zero do not count in
  // the second.
  Slice(const std::string& text) : data_(text.data()), size_(text.size()) {}
  Slice(const char* text) : data_(text), size_(std::strlen(text)) {}

  Slice(const Slice&) = default;
  Slice& operator=(const Slice&) = default;

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  char operator[](size_t index) const {
    assert(index < size_);
    return data_[index];
  }

  // Makes it refer to no bytes.
  void clear() {
    data_ = "";
    size_ = 0;
  }

  // Leaves the first bytes out. There must be so many.
  void remove_prefix(size_t count) {
    assert(count <= size_);
    data_ += count;
    size_ -= count;
  }

  // A copy of the bytes.
  std::string ToString() const { return std::string(data_, size_); }

  // Negative, zero or positive: this is before, the same as or behind other, by bytes without sign; a
  // beginning is before the whole.
  int compare(const Slice& other) const {
    const size_t shorter = size_ < other.size_ ? size_ : other.size_;
    // No bytes may have no address, which memcmp does not take.
    const int difference = shorter == 0 ? 0 : std::memcmp(data_, other.data_, shorter);
    if (difference != 0 || size_ == other.size_) return difference;
    return size_ < other.size_ ? -1 : 1;
  }

  bool starts_with(const Slice& beginning) const {
    return beginning.size_ <= size_ && Slice(data_, beginning.size_).compare(beginning) == 0;
  }

 private:
  const char* data_;
  size_t size_;
};

inline bool operator==(const Slice& left, const Slice& right) {
  return left.size() == right.size() && left.compare(right) == 0;
}

inline bool operator!=(const Slice& left, const Slice& right) { return !(left == right); }

}  // namespace leveldb

#endif
