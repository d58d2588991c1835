// FilterPolicy: LevelDB's Bloom filter, alone and inside a policy of a program's own.

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "leveldb/filter_policy.h"

using namespace leveldb;

static std::string Hex(const std::string& bytes) {
  std::string hex;
  for (unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    hex += digits;
  }
  return hex;
}

static std::string Filter(const FilterPolicy& policy, const std::vector<std::string>& keys) {
  const std::vector<Slice> slices(keys.begin(), keys.end());
  std::string filter = "before";
  policy.CreateFilter(slices.data(), static_cast<int>(slices.size()), &filter);
  CHECK_EQUAL(filter.substr(0, 6), "before");
  return filter.substr(6);
}

// The bytes are those of LevelDB.
static void format() {
  const std::unique_ptr<const FilterPolicy> policy(NewBloomFilterPolicy(10));
  CHECK_EQUAL(std::string(policy->Name()), "leveldb.BuiltinBloomFilter2");
  CHECK_EQUAL(Hex(Filter(*policy, {})), "000000000000000006");
  CHECK_EQUAL(Hex(Filter(*policy, {"hello", "world"})), "114000414410401006");
  CHECK_EQUAL(Hex(Filter(*policy, {"", "a", "ab", "abc", "abcd", "\xff\xfe\xfd", "key number seven"})),
              "e8099dc88eaa3989b006");
  const std::unique_ptr<const FilterPolicy> few(NewBloomFilterPolicy(1)), many(NewBloomFilterPolicy(100));
  CHECK_EQUAL(Hex(Filter(*few, {"hello", "world"})), "004000000000001001");
  CHECK_EQUAL(Filter(*many, {"hello"}).back(), 30);
}

static void answers() {
  const std::unique_ptr<const FilterPolicy> policy(NewBloomFilterPolicy(10));
  std::vector<std::string> keys;
  for (int number = 0; number < 1000; number++) keys.push_back("key" + std::to_string(number));
  const std::string filter = Filter(*policy, keys);
  for (const std::string& key : keys) CHECK(policy->KeyMayMatch(key, filter));
  int wrong = 0;
  for (int number = 0; number < 10000; number++)
    wrong += policy->KeyMayMatch("other" + std::to_string(number), filter);
  CHECK(wrong < 200);
  CHECK(!policy->KeyMayMatch("key1", Filter(*policy, {})));
  CHECK(!policy->KeyMayMatch("key1", "") && !policy->KeyMayMatch("key1", "x"));
  // A format that is not known yet.
  CHECK(policy->KeyMayMatch("key1", Slice("\0\0\0\0\0\0\0\0\x1f", 9)));
}

// For an order that takes keys of either case for the same.
class WithoutCase : public FilterPolicy {
 public:
  explicit WithoutCase(const FilterPolicy* inner) : inner_(inner) {}
  const char* Name() const override { return "test.WithoutCase"; }
  void CreateFilter(const Slice* keys, int n, std::string* destination) const override {
    std::vector<std::string> lower;
    for (int index = 0; index < n; index++) lower.push_back(Lower(keys[index]));
    const std::vector<Slice> slices(lower.begin(), lower.end());
    inner_->CreateFilter(slices.data(), n, destination);
  }
  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    return inner_->KeyMayMatch(Lower(key), filter);
  }

 private:
  static std::string Lower(const Slice& key) {
    std::string lower = key.ToString();
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return lower;
  }
  const std::unique_ptr<const FilterPolicy> inner_;
};

static void in_a_database(const FilterPolicy* policy, const char* name) {
  const std::unique_ptr<const FilterPolicy> owned(policy);
  Options options = check::Creating();
  options.filter_policy = policy;
  check::Database db = check::Open(name, options);
  for (int number = 0; number < 200; number++) check::Put(db.get(), "Key" + std::to_string(number), "value");
  db->CompactRange(nullptr, nullptr);
  for (int number = 0; number < 200; number++)
    CHECK_EQUAL(check::Get(db.get(), "Key" + std::to_string(number)), "value");
  CHECK_EQUAL(check::Get(db.get(), "Key200"), "NONE");
}

void filter_suite() {
  format();
  answers();
  in_a_database(nullptr, "filter-none");
  in_a_database(NewBloomFilterPolicy(0), "filter-zero");
  in_a_database(NewBloomFilterPolicy(10), "filter-bloom");
  in_a_database(NewBloomFilterPolicy(1000), "filter-large");
  in_a_database(new WithoutCase(NewBloomFilterPolicy(10)), "filter-own");
}
