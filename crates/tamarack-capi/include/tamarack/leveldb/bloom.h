// LevelDB's Bloom filter, and how DB::Open learns the bits of one. Included by <leveldb/filter_policy.h>
// alone, behind its classes.
//
// Tamarack's tables do not use it. It works, for programs wrap it in policies of their own and may ask it
// directly. The format is that of LevelDB's "leveldb.BuiltinBloomFilter2": an array of bits, then one byte
// that says how many of them each key sets.

#ifndef TAMARACK_LEVELDB_BLOOM_H
#define TAMARACK_LEVELDB_BLOOM_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "leveldb/slice.h"

namespace tamarack {
namespace leveldb_v1 {

inline const char* BloomName() { return "leveldb.BuiltinBloomFilter2"; }

class Bloom final : public leveldb::FilterPolicy {
 public:
  explicit Bloom(int bits_per_key)
      : bits_per_key_(bits_per_key < 0 ? 0 : static_cast<size_t>(bits_per_key)),
        probes_(Probes(bits_per_key_)) {}

  const char* Name() const override { return BloomName(); }

  void CreateFilter(const leveldb::Slice* keys, int n, std::string* destination) const override {
    const size_t start = destination->size();
    if (bits_per_key_ == 0) {
      // Says nothing about any key.
      destination->push_back(0);
      destination->push_back(static_cast<char>(kMatchesAll));
      return;
    }
    const size_t count = n < 0 ? 0 : static_cast<size_t>(n);
    // Few keys would have many false answers in an array as short as they.
    const size_t wanted = count * bits_per_key_ < 64 ? 64 : count * bits_per_key_;
    const size_t bytes = (wanted + 7) / 8;
    destination->resize(start + bytes, 0);
    destination->push_back(static_cast<char>(probes_));
    for (size_t index = 0; index < count; index++) {
      uint32_t hash = Hash(keys[index]);
      const uint32_t step = Step(hash);
      for (size_t probe = 0; probe < probes_; probe++, hash += step) {
        const size_t bit = hash % (bytes * 8);
        (*destination)[start + bit / 8] |= static_cast<char>(1 << (bit % 8));
      }
    }
  }

  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override {
    if (filter.size() < 2) return false;
    const size_t bytes = filter.size() - 1;
    const size_t probes = static_cast<unsigned char>(filter[bytes]);
    if (probes >= kMatchesAll) return true;
    uint32_t hash = Hash(key);
    const uint32_t step = Step(hash);
    for (size_t probe = 0; probe < probes; probe++, hash += step) {
      const size_t bit = hash % (bytes * 8);
      if ((filter[bit / 8] & (1 << (bit % 8))) == 0) return false;
    }
    return true;
  }

 private:
  // From here on the last byte is not a number of probes.
  static const size_t kMatchesAll = 31;

  // The best number is that of the bits times the logarithm of 2.
  static size_t Probes(size_t bits_per_key) {
    const double best = static_cast<double>(bits_per_key) * 0.69;
    return best < 1 ? 1 : best > 30 ? 30 : static_cast<size_t>(best);
  }

  static uint32_t Step(uint32_t hash) { return (hash >> 17) | (hash << 15); }

  // LevelDB's hash of 32 bits, with the seed of its filters.
  static uint32_t Hash(const leveldb::Slice& key) {
    const uint32_t multiplier = 0xc6a4a793;
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(key.data());
    const size_t size = key.size();
    uint32_t hash = 0xbc9f1d34 ^ (static_cast<uint32_t>(size) * multiplier);
    size_t at = 0;
    for (; at + 4 <= size; at += 4) {
      const uint32_t word = bytes[at] | static_cast<uint32_t>(bytes[at + 1]) << 8 |
                            static_cast<uint32_t>(bytes[at + 2]) << 16 |
                            static_cast<uint32_t>(bytes[at + 3]) << 24;
      hash = (hash + word) * multiplier;
      hash ^= hash >> 16;
    }
    if (at < size) {
      uint32_t rest = 0;
      for (size_t index = at; index < size; index++)
        rest += static_cast<uint32_t>(bytes[index]) << (8 * (index - at));
      hash = (hash + rest) * multiplier;
      hash ^= hash >> 24;
    }
    return hash;
  }

  const size_t bits_per_key_;
  const size_t probes_;
};

// How many bits for each key a policy has; -1 if it is not LevelDB's Bloom filter. The filter itself is
// asked, which works as well for one that another part of the process has made, with headers of another
// version or LevelDB's own.
inline int BloomBits(const leveldb::FilterPolicy& policy) {
  if (std::strcmp(policy.Name(), BloomName()) != 0) return -1;
  const leveldb::Slice keys[64] = {};
  std::string filter;
  policy.CreateFilter(keys, 64, &filter);
  // 64 keys have 8 bytes for each of their bits, and there is one byte more.
  const size_t bits = filter.empty() ? 0 : (filter.size() - 1) / 8;
  return bits > 1000 ? 1000 : static_cast<int>(bits);
}

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
