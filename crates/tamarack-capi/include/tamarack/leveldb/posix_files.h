// Files of the operating system as LevelDB's classes of files. Included by posix_env.h alone.
//
// Each owns a descriptor. Calls that a signal has interrupted are made again. Errors name the file and say
// what the system says.

#ifndef TAMARACK_LEVELDB_POSIX_FILES_H
#define TAMARACK_LEVELDB_POSIX_FILES_H

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace tamarack {
namespace leveldb_v1 {

// What a call with this file that failed with this number means.
inline leveldb::Status PosixError(const std::string& name, int number) {
  const std::string why = std::generic_category().message(number);
  return number == ENOENT ? leveldb::Status::NotFound(name, why) : leveldb::Status::IOError(name, why);
}

// An open descriptor and the name of its file.
class Descriptor {
 public:
  Descriptor(const std::string& name, int number) : name_(name), number_(number) {}
  ~Descriptor() { Close(); }

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  // Negative after an error.
  static int Open(const std::string& name, int flags) {
    int number;
    do {
      number = ::open(name.c_str(), flags | O_CLOEXEC, 0644);
    } while (number < 0 && errno == EINTR);
    return number;
  }

  const std::string& name() const { return name_; }
  int number() const { return number_; }
  leveldb::Status Failed() const { return PosixError(name_, errno); }

  leveldb::Status Close() {
    const int number = number_;
    number_ = -1;
    // It is closed whatever this returns.
    return number >= 0 && ::close(number) != 0 ? Failed() : leveldb::Status::OK();
  }

  // Reads until n bytes are there or the file ends: on from where it stands, or from offset unless it is
  // negative.
  leveldb::Status Read(off_t offset, size_t n, leveldb::Slice* result, char* scratch) const {
    size_t done = 0;
    while (done < n) {
      const ssize_t count =
          offset < 0 ? ::read(number_, scratch + done, n - done)
                     : ::pread(number_, scratch + done, n - done, offset + static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        *result = leveldb::Slice(scratch, 0);
        return Failed();
      }
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    *result = leveldb::Slice(scratch, done);
    return leveldb::Status::OK();
  }

  leveldb::Status Write(const char* data, size_t size) const {
    while (size > 0) {
      const ssize_t count = ::write(number_, data, size);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failed();
      data += count;
      size -= static_cast<size_t>(count);
    }
    return leveldb::Status::OK();
  }

 private:
  const std::string name_;
  int number_;
};

class PosixSequentialFile final : public leveldb::SequentialFile {
 public:
  PosixSequentialFile(const std::string& name, int number) : file_(name, number) {}

  leveldb::Status Read(size_t n, leveldb::Slice* result, char* scratch) override {
    return file_.Read(-1, n, result, scratch);
  }

  leveldb::Status Skip(uint64_t n) override {
    const off_t most = std::numeric_limits<off_t>::max();
    const off_t distance = n > static_cast<uint64_t>(most) ? most : static_cast<off_t>(n);
    return ::lseek(file_.number(), distance, SEEK_CUR) < 0 ? file_.Failed() : leveldb::Status::OK();
  }

 private:
  Descriptor file_;
};

class PosixRandomAccessFile final : public leveldb::RandomAccessFile {
 public:
  PosixRandomAccessFile(const std::string& name, int number) : file_(name, number) {}

  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice* result, char* scratch) const override {
    if (offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
      *result = leveldb::Slice(scratch, 0);
      return leveldb::Status::OK();
    }
    return file_.Read(static_cast<off_t>(offset), n, result, scratch);
  }

 private:
  const Descriptor file_;
};

// Collects small writes.
class PosixWritableFile final : public leveldb::WritableFile {
 public:
  PosixWritableFile(const std::string& name, int number) : file_(name, number), open_(true) {}
  ~PosixWritableFile() override {
    if (open_) Close();
  }

  leveldb::Status Append(const leveldb::Slice& data) override {
    if (collected_.size() + data.size() <= kCollectedMax) {
      collected_.append(data.data(), data.size());
      return leveldb::Status::OK();
    }
    leveldb::Status status = Flush();
    if (!status.ok()) return status;
    if (data.size() > kCollectedMax) return file_.Write(data.data(), data.size());
    collected_.assign(data.data(), data.size());
    return status;
  }

  leveldb::Status Close() override {
    open_ = false;
    const leveldb::Status flushed = Flush();
    const leveldb::Status closed = file_.Close();
    return flushed.ok() ? closed : flushed;
  }

  leveldb::Status Flush() override {
    const leveldb::Status status = file_.Write(collected_.data(), collected_.size());
    // Not a second time: the first part may be in the file.
    collected_.clear();
    return status;
  }

  leveldb::Status Sync() override {
    const leveldb::Status status = Flush();
    if (!status.ok()) return status;
    return ::fsync(file_.number()) != 0 ? file_.Failed() : status;
  }

 private:
  static const size_t kCollectedMax = static_cast<size_t>(64) << 10;

  Descriptor file_;
  bool open_;
  std::string collected_;
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
