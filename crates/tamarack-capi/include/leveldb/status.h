// leveldb::Status: how an operation went: well, or an error of one of five kinds with a message.
//
// Messages are for people. Whether something was not found, is damaged and so on is asked by the functions
// Is...(). Several threads may read one; changing one while others use it needs a lock.

#ifndef TAMARACK_LEVELDB_STATUS_H
#define TAMARACK_LEVELDB_STATUS_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "leveldb/export.h"
#include "leveldb/slice.h"

namespace leveldb {

class LEVELDB_EXPORT Status {
 public:
  // All is well.
  Status() noexcept : state_(nullptr) {}
  ~Status() { delete[] state_; }

  Status(const Status& other) : state_(other.state_ == nullptr ? nullptr : CopyState(other.state_)) {}
  Status& operator=(const Status& other) {
    if (state_ != other.state_) {
      Status copy(other);
      std::swap(state_, copy.state_);
    }
    return *this;
  }

  Status(Status&& other) noexcept : state_(other.state_) { other.state_ = nullptr; }
  Status& operator=(Status&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }

  static Status OK() { return Status(); }

  // An error. Its text is that of message, and ": " and that of detail if there is one.
  static Status NotFound(const Slice& message, const Slice& detail = Slice()) {
    return Status(kNotFound, message, detail);
  }
  static Status Corruption(const Slice& message, const Slice& detail = Slice()) {
    return Status(kCorruption, message, detail);
  }
  static Status NotSupported(const Slice& message, const Slice& detail = Slice()) {
    return Status(kNotSupported, message, detail);
  }
  static Status InvalidArgument(const Slice& message, const Slice& detail = Slice()) {
    return Status(kInvalidArgument, message, detail);
  }
  static Status IOError(const Slice& message, const Slice& detail = Slice()) {
    return Status(kIOError, message, detail);
  }

  bool ok() const { return state_ == nullptr; }
  bool IsNotFound() const { return code() == kNotFound; }
  bool IsCorruption() const { return code() == kCorruption; }
  // Also where a lock is held by somebody else, and where there is no space.
  bool IsIOError() const { return code() == kIOError; }
  bool IsNotSupportedError() const { return code() == kNotSupported; }
  bool IsInvalidArgument() const { return code() == kInvalidArgument; }

  // For people: "OK", or the kind and the message, such as "NotFound: a file".
  std::string ToString() const;

 private:
  enum Code {
    kOk = 0,
    kNotFound = 1,
    kCorruption = 2,
    kNotSupported = 3,
    kInvalidArgument = 4,
    kIOError = 5
  };

  // Bytes of an error before its message: the length of that in 4 bytes as the machine writes them, and the
  // code.
  static const size_t kHeaderBytes = 5;

  Code code() const { return state_ == nullptr ? kOk : static_cast<Code>(state_[4]); }

  Status(Code code, const Slice& message, const Slice& detail);
  static const char* CopyState(const char* state);

  // NULL if all is well. Laid out as in LevelDB 1.23, whose programs look into it by code of their own.
  const char* state_;
};

TAMARACK_LEVELDB_INLINE Status::Status(Code code, const Slice& message, const Slice& detail) {
  std::string text = message.ToString();
  if (!detail.empty()) text.append(": ").append(detail.data(), detail.size());
  const uint32_t length = static_cast<uint32_t>(std::min<size_t>(text.size(), UINT32_MAX));
  char* state = new char[kHeaderBytes + length];
  std::memcpy(state, &length, sizeof length);
  state[4] = static_cast<char>(code);
  std::memcpy(state + kHeaderBytes, text.data(), length);
  state_ = state;
}

TAMARACK_LEVELDB_INLINE const char* Status::CopyState(const char* state) {
  uint32_t length;
  std::memcpy(&length, state, sizeof length);
  char* copy = new char[kHeaderBytes + length];
  std::memcpy(copy, state, kHeaderBytes + length);
  return copy;
}

TAMARACK_LEVELDB_INLINE std::string Status::ToString() const {
  std::string kind;
  switch (code()) {
    case kOk:
      return "OK";
    case kNotFound:
      kind = "NotFound: ";
      break;
    case kCorruption:
      kind = "Corruption: ";
      break;
    case kNotSupported:
      kind = "Not implemented: ";
      break;
    case kInvalidArgument:
      kind = "Invalid argument: ";
      break;
    case kIOError:
      kind = "IO error: ";
      break;
  }
  uint32_t length;
  std::memcpy(&length, state_, sizeof length);
  return kind.append(state_ + kHeaderBytes, length);
}

}  // namespace leveldb

#endif
