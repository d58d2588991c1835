// Comparator: the order of bytes, and orders of a program's own.

#include <cstdlib>
#include <string>

#include "check.h"
#include "leveldb/comparator.h"

using namespace leveldb;

static std::string Separator(std::string start, const Slice& limit) {
  BytewiseComparator()->FindShortestSeparator(&start, limit);
  return start;
}

static std::string Successor(std::string key) {
  BytewiseComparator()->FindShortSuccessor(&key);
  return key;
}

static void bytes() {
  const Comparator* order = BytewiseComparator();
  CHECK(order == BytewiseComparator());
  CHECK_EQUAL(std::string(order->Name()), "leveldb.BytewiseComparator");
  CHECK(order->Compare("a", "b") < 0 && order->Compare("\xff", "a") > 0 && order->Compare("a", "a") == 0);
  CHECK_EQUAL(Separator("abcdef", "abzz"), "abd");
  CHECK_EQUAL(Separator("abc1xyz", "abc3"), "abc2");
  CHECK_EQUAL(Separator("abc1", "abc2"), "abc1");
  CHECK_EQUAL(Separator("abc", "abcdef"), "abc");
  CHECK_EQUAL(Separator("abcdef", "abc"), "abcdef");
  CHECK_EQUAL(Separator("b", "a"), "b");
  CHECK_EQUAL(Separator("\xff", "a"), "\xff");
  CHECK_EQUAL(Separator("", ""), "");
  CHECK_EQUAL(Successor("abc"), "b");
  CHECK_EQUAL(Successor("\xff\xff"
                        "abc"),
              "\xff\xff"
              "b");
  CHECK_EQUAL(Successor("\xff\xff"), "\xff\xff");
  CHECK_EQUAL(Successor(""), "");
}

// Numbers as texts, by their size; keys of one size of the number are the same key.
class ByNumber : public Comparator {
 public:
  explicit ByNumber(const char* name) : name_(name) {}
  int Compare(const Slice& a, const Slice& b) const override {
    const long left = Number(a), right = Number(b);
    return left < right ? -1 : left > right;
  }
  const char* Name() const override { return name_.c_str(); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  static long Number(const Slice& key) { return std::strtol(key.ToString().c_str(), nullptr, 0); }
  const std::string name_;
};

static void own_order() {
  const ByNumber by_number("test.ByNumber");
  Options options = check::Creating();
  options.comparator = &by_number;
  {
    check::Database db = check::Open("order", options);
    for (const char* key : {"10", "9", "0x20", "100", "-5"}) check::Put(db.get(), key, key);
    check::Put(db.get(), "32", "again");
    CHECK_EQUAL(check::Get(db.get(), "0x09"), "9");
    CHECK_EQUAL(check::Get(db.get(), "0x20"), "again");
    check::Walk walk(db->NewIterator(ReadOptions()));
    std::string values;
    for (walk->SeekToFirst(); walk->Valid(); walk->Next()) values += walk->value().ToString() + " ";
    CHECK_EQUAL(values, "-5 9 10 again 100 ");
    db->CompactRange(nullptr, nullptr);
    CHECK_EQUAL(check::Get(db.get(), "0xa"), "10");
  }
  // Options and the objects that were made for them are gone; the order is asked again when it is opened.
  check::Database db = check::Open("order", options);
  CHECK_EQUAL(check::Get(db.get(), "0x64"), "100");
}

static void another_order_is_refused() {
  const ByNumber by_number("test.ByNumber"), other("test.Other");
  Options options = check::Creating();
  options.comparator = &by_number;
  check::Open("order-name", options);
  DB* db = nullptr;
  options.comparator = &other;
  Status status = DB::Open(options, check::Fresh("order-name"), &db);
  CHECK(status.IsInvalidArgument() && db == nullptr);
  status = DB::Open(check::Creating(), check::Fresh("order-name"), &db);
  CHECK(status.IsInvalidArgument() && db == nullptr);
}

// The order of bytes by its name, as a library has it that was built apart.
class Wrapper : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return BytewiseComparator()->Compare(a, b); }
  const char* Name() const override { return BytewiseComparator()->Name(); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

static void its_name_is_the_order_of_bytes() {
  const Wrapper wrapper;
  Options options = check::Creating();
  check::Put(check::Open("order-wrapped", options).get(), "b", "plain");
  options.comparator = &wrapper;
  {
    check::Database db = check::Open("order-wrapped", options);
    CHECK_EQUAL(check::Get(db.get(), "b"), "plain");
    check::Put(db.get(), "a", "wrapped");
  }
  check::Database db = check::Open("order-wrapped", check::Creating());
  CHECK_EQUAL(check::Get(db.get(), "a"), "wrapped");
}

void order_suite() {
  bytes();
  its_name_is_the_order_of_bytes();
  own_order();
  another_order_is_refused();
}
