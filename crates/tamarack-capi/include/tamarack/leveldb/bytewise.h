// The order of bytes as a leveldb::Comparator. Included by <leveldb/comparator.h> alone, behind its classes;
// programs use BytewiseComparator().
//
// DB::Open knows it by its address and has Tamarack compare by itself; the functions are for programs that
// build orders of their own upon it.

#ifndef TAMARACK_LEVELDB_BYTEWISE_H
#define TAMARACK_LEVELDB_BYTEWISE_H

#include <cstddef>
#include <string>

#include "leveldb/slice.h"

namespace tamarack {
// What is behind LevelDB's classes. Parts of a process may be compiled with different versions of these
// headers, so the number changes when one of the classes here does.
namespace leveldb_v1 {

class Bytewise final : public leveldb::Comparator {
 public:
  int Compare(const leveldb::Slice& a, const leveldb::Slice& b) const override { return a.compare(b); }

  const char* Name() const override { return "leveldb.BytewiseComparator"; }

  // Where the first byte that differs can be made one larger without reaching that of limit, that is enough.
  void FindShortestSeparator(std::string* start, const leveldb::Slice& limit) const override {
    size_t same = 0;
    while (same < start->size() && same < limit.size() && (*start)[same] == limit[same]) same++;
    if (same == start->size() || same == limit.size()) return;
    const unsigned char byte = static_cast<unsigned char>((*start)[same]);
    const unsigned char bound = static_cast<unsigned char>(limit[same]);
    // Only upwards: start is to be before limit.
    if (byte + 1 >= bound) return;
    (*start)[same] = static_cast<char>(byte + 1);
    start->resize(same + 1);
  }

  // One larger in the first byte that can be; keys of 0xff alone stay.
  void FindShortSuccessor(std::string* key) const override {
    for (size_t index = 0; index < key->size(); index++) {
      const unsigned char byte = static_cast<unsigned char>((*key)[index]);
      if (byte == 0xff) continue;
      (*key)[index] = static_cast<char>(byte + 1);
      key->resize(index + 1);
      return;
    }
  }
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
