// Objects and errors of <leveldb/c.h> in C++'s hands: who destroys them, and what an error text says. Part of
// what is behind <leveldb/db.h>.

#ifndef TAMARACK_LEVELDB_C_OBJECTS_H
#define TAMARACK_LEVELDB_C_OBJECTS_H

#include <cstddef>
#include <memory>
#include <string>

#include "leveldb/c.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "tamarack/c.h"

namespace tamarack {
namespace leveldb_v1 {

struct DestroyObject {
  void operator()(char* text) const { leveldb_free(text); }
  void operator()(leveldb_t* db) const { leveldb_close(db); }
  void operator()(leveldb_cache_t* cache) const { leveldb_cache_destroy(cache); }
  void operator()(leveldb_comparator_t* comparator) const { leveldb_comparator_destroy(comparator); }
  void operator()(leveldb_filterpolicy_t* policy) const { leveldb_filterpolicy_destroy(policy); }
  void operator()(leveldb_iterator_t* iterator) const { leveldb_iter_destroy(iterator); }
  void operator()(leveldb_options_t* options) const { leveldb_options_destroy(options); }
  void operator()(leveldb_readoptions_t* options) const { leveldb_readoptions_destroy(options); }
  void operator()(leveldb_writebatch_t* batch) const { leveldb_writebatch_destroy(batch); }
  void operator()(leveldb_writeoptions_t* options) const { leveldb_writeoptions_destroy(options); }
};

// Holds an object and destroys it.
template <typename Object>
using Owned = std::unique_ptr<Object, DestroyObject>;

// The status that an error text of the C interface stands for: its beginning is the kind.
inline leveldb::Status StatusOf(const char* text) {
  using leveldb::Slice;
  using leveldb::Status;
  struct Kind {
    const char* beginning;
    Status (*make)(const Slice& message, const Slice& detail);
  };
  static const Kind kinds[] = {{"NotFound: ", &Status::NotFound},
                               {"Corruption: ", &Status::Corruption},
                               {"Not implemented: ", &Status::NotSupported},
                               {"Invalid argument: ", &Status::InvalidArgument},
                               {"IO error: ", &Status::IOError}};
  Slice rest(text);
  for (const Kind& kind : kinds) {
    if (!rest.starts_with(kind.beginning)) continue;
    rest.remove_prefix(Slice(kind.beginning).size());
    return kind.make(rest, Slice());
  }
  return Status::IOError(rest);
}

// Takes what a C function says through its errptr.
class Failure {
 public:
  Failure() : text_(nullptr) {}
  ~Failure() { leveldb_free(text_); }

  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;

  char** pointer() { return &text_; }
  leveldb::Status status() const { return text_ == nullptr ? leveldb::Status::OK() : StatusOf(text_); }

 private:
  char* text_;
};

// Bytes of a C function, which has NULL for none.
inline leveldb::Slice SliceOf(const char* bytes, size_t size) {
  return bytes == nullptr ? leveldb::Slice() : leveldb::Slice(bytes, size);
}

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
