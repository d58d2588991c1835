// Slice and Status.

#include <string>
#include <utility>

#include "check.h"
#include "leveldb/slice.h"

using leveldb::Slice;
using leveldb::Status;

static void slices() {
  CHECK(Slice().empty() && Slice().size() == 0 && Slice() == Slice(""));
  const std::string with_zero("a\0b", 3);
  CHECK_EQUAL(Slice(with_zero).size(), 3u);
  CHECK_EQUAL(Slice("a\0b").size(), 1u);
  CHECK_EQUAL(Slice(with_zero).ToString(), with_zero);
  Slice slice("hello");
  CHECK(slice[1] == 'e' && slice.starts_with("he") && slice.starts_with("") &&
        !slice.starts_with("hello you"));
  CHECK(!slice.starts_with("hallo") && slice == "hello" && slice != "hell" && slice != "hella");
  slice.remove_prefix(2);
  CHECK_EQUAL(slice.ToString(), "llo");
  slice.clear();
  CHECK(slice.empty());
  // By bytes without sign, and a beginning before the whole.
  CHECK(Slice("a").compare("b") < 0 && Slice("b").compare("a") > 0 && Slice("a").compare("a") == 0);
  CHECK(Slice("a").compare("aa") < 0 && Slice("aa").compare("a") > 0 && Slice("").compare("a") < 0);
  CHECK(Slice("\xff").compare("a") > 0 && Slice("").compare("") == 0);
}

static void kinds() {
  const Status ok;
  CHECK(ok.ok() && Status::OK().ok());
  CHECK_EQUAL(ok.ToString(), "OK");
  CHECK(!ok.IsNotFound() && !ok.IsCorruption() && !ok.IsIOError() && !ok.IsNotSupportedError() &&
        !ok.IsInvalidArgument());
  const struct {
    Status status;
    bool (Status::*is)() const;
    const char* text;
  } all[] = {
      {Status::NotFound("a", "b"), &Status::IsNotFound, "NotFound: a: b"},
      {Status::Corruption("a"), &Status::IsCorruption, "Corruption: a"},
      {Status::NotSupported("", "b"), &Status::IsNotSupportedError, "Not implemented: : b"},
      {Status::InvalidArgument(""), &Status::IsInvalidArgument, "Invalid argument: "},
      {Status::IOError(Slice("\0", 1)), &Status::IsIOError, nullptr},
  };
  for (const auto& one : all) {
    CHECK(!one.status.ok());
    if (one.text != nullptr) CHECK_EQUAL(one.status.ToString(), one.text);
    for (const auto& other : all) CHECK((one.status.*other.is)() == (&one == &other));
  }
  CHECK_EQUAL(all[4].status.ToString(), std::string("IO error: \0", 11));
}

static void copies() {
  Status first = Status::NotFound("first");
  Status copy(first), assigned;
  assigned = first;
  first = Status::Corruption("other");
  CHECK_EQUAL(copy.ToString(), "NotFound: first");
  CHECK_EQUAL(assigned.ToString(), "NotFound: first");
  const Status& itself = assigned;
  assigned = itself;
  CHECK_EQUAL(assigned.ToString(), "NotFound: first");
  assigned = Status();
  CHECK(assigned.ok() && !copy.ok());
  Status moved(std::move(copy));
  CHECK_EQUAL(moved.ToString(), "NotFound: first");
  Status again;
  again = std::move(moved);
  CHECK(again.IsNotFound());
  again = Status::OK();
  CHECK(again.ok());
}

void value_suite() {
  slices();
  kinds();
  copies();
}
