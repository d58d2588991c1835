// How a leveldb::WriteBatch lies in memory. Included by <leveldb/write_batch.h> alone, behind its classes.
//
// It is LevelDB's format, because programs that were compiled with LevelDB's header copy batches, and some
// reach into them:
//
//   8 bytes that are zero, the number of operations in 4 bytes, and for each
//   1: a put: the length of the key, the key, the length of the value, the value
//   0: a deletion: the length of the key, the key
//
// Numbers are little-endian, and lengths have seven bits in each byte, the lowest first, of which all but the
// last have the eighth bit set. LevelDB has no place for lengths of 4 GiB and no way to say so where an
// operation is added; here such an operation leaves a mark, and what it cannot be done with fails.

#ifndef TAMARACK_LEVELDB_BATCH_FORMAT_H
#define TAMARACK_LEVELDB_BATCH_FORMAT_H

#include <cstddef>
#include <cstdint>
#include <string>

#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace tamarack {
namespace leveldb_v1 {

class BatchFormat {
 public:
  static void Clear(std::string* batch) { batch->assign(kHeaderBytes, '\0'); }

  static void AddPut(std::string* batch, const leveldb::Slice& key, const leveldb::Slice& value) {
    if (!Fits(key) || !Fits(value)) return AddTooLong(batch);
    Begin(batch, kPut);
    AddBytes(batch, key);
    AddBytes(batch, value);
  }

  static void AddDelete(std::string* batch, const leveldb::Slice& key) {
    if (!Fits(key)) return AddTooLong(batch);
    Begin(batch, kDelete);
    AddBytes(batch, key);
  }

  static void Append(std::string* batch, const std::string& source) {
    if (source.size() < kHeaderBytes) return;
    SetCount(batch, Count(*batch) + Count(source));
    batch->append(source, kHeaderBytes, std::string::npos);
  }

  static leveldb::Status Iterate(const std::string& batch, leveldb::WriteBatch::Handler* handler) {
    if (batch.size() < kHeaderBytes) return Damaged("it is too short");
    leveldb::Slice rest(batch.data() + kHeaderBytes, batch.size() - kHeaderBytes);
    uint32_t found = 0;
    for (; !rest.empty(); found++) {
      const char kind = rest[0];
      rest.remove_prefix(1);
      leveldb::Slice key, value;
      switch (kind) {
        case kPut:
          if (!TakeBytes(&rest, &key) || !TakeBytes(&rest, &value)) return Damaged("a put is cut off");
          handler->Put(key, value);
          break;
        case kDelete:
          if (!TakeBytes(&rest, &key)) return Damaged("a deletion is cut off");
          handler->Delete(key);
          break;
        case kTooLong:
          return leveldb::Status::InvalidArgument("a key or value of the write batch has 4 GiB or more");
        default:
          return Damaged("an operation is of no kind");
      }
    }
    if (found != Count(batch)) return Damaged("it has another number of operations than it says");
    return leveldb::Status::OK();
  }

 private:
  static const size_t kHeaderBytes = 12;
  static const size_t kCountAt = 8;
  enum Kind : char { kDelete = 0, kPut = 1, kTooLong = 0x7f };

  static bool Fits(const leveldb::Slice& bytes) { return bytes.size() <= UINT32_MAX; }

  static leveldb::Status Damaged(const char* how) { return leveldb::Status::Corruption("write batch", how); }

  static void AddTooLong(std::string* batch) { Begin(batch, kTooLong); }

  static void Begin(std::string* batch, Kind kind) {
    SetCount(batch, Count(*batch) + 1);
    batch->push_back(kind);
  }

  static uint32_t Count(const std::string& batch) {
    uint32_t count = 0;
    for (size_t byte = 0; byte < 4; byte++) {
      count |= static_cast<uint32_t>(static_cast<unsigned char>(batch[kCountAt + byte])) << (8 * byte);
    }
    return count;
  }

  static void SetCount(std::string* batch, uint32_t count) {
    for (size_t byte = 0; byte < 4; byte++)
      (*batch)[kCountAt + byte] = static_cast<char>(count >> (8 * byte));
  }

  static void AddBytes(std::string* batch, const leveldb::Slice& bytes) {
    uint32_t rest = static_cast<uint32_t>(bytes.size());
    for (; rest >= 0x80; rest >>= 7) batch->push_back(static_cast<char>(rest | 0x80));
    batch->push_back(static_cast<char>(rest));
    batch->append(bytes.data(), bytes.size());
  }

  // Takes a length and so many bytes from the beginning of rest; whether they are there.
  static bool TakeBytes(leveldb::Slice* rest, leveldb::Slice* bytes) {
    uint64_t length = 0;
    for (unsigned shift = 0; shift <= 28; shift += 7) {
      if (rest->empty()) return false;
      const unsigned char byte = static_cast<unsigned char>((*rest)[0]);
      rest->remove_prefix(1);
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if (length > rest->size()) return false;
      *bytes = leveldb::Slice(rest->data(), static_cast<size_t>(length));
      rest->remove_prefix(static_cast<size_t>(length));
      return true;
    }
    return false;
  }
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
