// leveldb::Comparator: an order of keys, and the order of bytes.
//
// A program's own order is a class derived from it. Many threads call it while a database is open with it,
// and it must outlive the database and its iterators. The database stores its name and is opened with no
// other.

#ifndef TAMARACK_LEVELDB_COMPARATOR_H
#define TAMARACK_LEVELDB_COMPARATOR_H

#include <string>

#include "leveldb/export.h"

namespace leveldb {

class Slice;

class LEVELDB_EXPORT Comparator {
 public:
  TAMARACK_LEVELDB_INLINE virtual ~Comparator();

  // Negative, zero or positive: a is before, the same as or behind b. Must not throw: that ends the program.
  virtual int Compare(const Slice& a, const Slice& b) const = 0;

  // To be changed when the order changes. Names that begin with "leveldb." are LevelDB's.
  virtual const char* Name() const = 0;

  // May change start into a shorter key that is before limit and not before what start was. Tamarack does not
  // call these two: keys are stored whole.
  virtual void FindShortestSeparator(std::string* start, const Slice& limit) const = 0;
  // May change key into a shorter one that is not before what it was.
  virtual void FindShortSuccessor(std::string* key) const = 0;
};

// The order of bytes without sign. Not to be deleted.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE const Comparator* BytewiseComparator();

}  // namespace leveldb

#include "tamarack/leveldb/bytewise.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE Comparator::~Comparator() {}

TAMARACK_LEVELDB_INLINE const Comparator* BytewiseComparator() {
  // Never destroyed, so that it can be used while a program ends.
  static const Comparator* const order = new tamarack::leveldb_v1::Bytewise;
  return order;
}

}  // namespace leveldb

#endif
