// leveldb::Env: files, threads and time for programs, and what they are made of.
//
// Env::Default() is the operating system. Databases do not go through it: Tamarack's engine does its input
// and output by itself, and DB::Open refuses any other Env. It is here for programs that use files by it, and
// for those that derive classes for themselves. Several threads may use an Env; files belong to one thread at
// a time unless said otherwise.

#ifndef TAMARACK_LEVELDB_ENV_H
#define TAMARACK_LEVELDB_ENV_H

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "leveldb/export.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

class FileLock;
class Logger;
class RandomAccessFile;
class SequentialFile;
class WritableFile;

class LEVELDB_EXPORT Env {
 public:
  TAMARACK_LEVELDB_INLINE Env();

  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  TAMARACK_LEVELDB_INLINE virtual ~Env();

  // The operating system. Not to be deleted.
  TAMARACK_LEVELDB_INLINE static Env* Default();

  // Open a file. After an error the result is NULL; one of a file that is not there is NotFound. The first
  // two read it; the file of the second may be used by several threads. The third makes it empty or new; the
  // fourth writes behind its end, and may say NotSupported. Results are to be deleted by the caller.
  virtual Status NewSequentialFile(const std::string& name, SequentialFile** result) = 0;
  virtual Status NewRandomAccessFile(const std::string& name, RandomAccessFile** result) = 0;
  virtual Status NewWritableFile(const std::string& name, WritableFile** result) = 0;
  TAMARACK_LEVELDB_INLINE virtual Status NewAppendableFile(const std::string& name, WritableFile** result);

  virtual bool FileExists(const std::string& name) = 0;

  // The names in a directory, without those of the directories before them.
  virtual Status GetChildren(const std::string& directory, std::vector<std::string>* result) = 0;

  // Removes a file. DeleteFile is its former name: each calls the other unless a derived class has its own,
  // and one of them it must have. The same holds for directories, which must be empty.
  TAMARACK_LEVELDB_INLINE virtual Status RemoveFile(const std::string& name);
  TAMARACK_LEVELDB_INLINE virtual Status DeleteFile(const std::string& name);
  virtual Status CreateDir(const std::string& name) = 0;
  TAMARACK_LEVELDB_INLINE virtual Status RemoveDir(const std::string& name);
  TAMARACK_LEVELDB_INLINE virtual Status DeleteDir(const std::string& name);

  virtual Status GetFileSize(const std::string& name, uint64_t* size) = 0;

  // What was called target is replaced.
  virtual Status RenameFile(const std::string& source, const std::string& target) = 0;

  // Locks a file, which is made, against this process and others; an error at once if somebody has it.
  // UnlockFile deletes the lock.
  virtual Status LockFile(const std::string& name, FileLock** lock) = 0;
  virtual Status UnlockFile(FileLock* lock) = 0;

  // Calls function(argument) some time later in a background thread, one after the other.
  virtual void Schedule(void (*function)(void* argument), void* argument) = 0;
  // Calls it in a thread of its own.
  virtual void StartThread(void (*function)(void* argument), void* argument) = 0;

  // A directory for tests, which is made.
  virtual Status GetTestDirectory(std::string* path) = 0;

  // A logger that writes into a new file. To be deleted by the caller.
  virtual Status NewLogger(const std::string& name, Logger** result) = 0;

  // Microseconds since some moment that stays the same.
  virtual uint64_t NowMicros() = 0;
  virtual void SleepForMicroseconds(int micros) = 0;
};

class LEVELDB_EXPORT SequentialFile {
 public:
  SequentialFile() = default;

  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;

  TAMARACK_LEVELDB_INLINE virtual ~SequentialFile();

  // Reads up to n bytes, fewer only at the end of the file; they may lie in scratch, which has room for n.
  virtual Status Read(size_t n, Slice* result, char* scratch) = 0;

  // Leaves n bytes out; behind the end there are none to read.
  virtual Status Skip(uint64_t n) = 0;
};

class LEVELDB_EXPORT RandomAccessFile {
 public:
  RandomAccessFile() = default;

  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  TAMARACK_LEVELDB_INLINE virtual ~RandomAccessFile();

  // Reads up to n bytes from offset on, as SequentialFile does. Several threads may do so.
  virtual Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const = 0;
};

class LEVELDB_EXPORT WritableFile {
 public:
  WritableFile() = default;

  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;

  TAMARACK_LEVELDB_INLINE virtual ~WritableFile();

  // May keep the bytes in memory; Flush and Close give them to the operating system, Sync to the device.
  virtual Status Append(const Slice& data) = 0;
  virtual Status Close() = 0;
  virtual Status Flush() = 0;
  virtual Status Sync() = 0;
};

class LEVELDB_EXPORT Logger {
 public:
  Logger() = default;

  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  TAMARACK_LEVELDB_INLINE virtual ~Logger();

  // Is told something for people, as by vprintf.
  virtual void Logv(const char* format, std::va_list arguments) = 0;
};

class LEVELDB_EXPORT FileLock {
 public:
  FileLock() = default;

  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  TAMARACK_LEVELDB_INLINE virtual ~FileLock();
};

// Tells a logger something, if there is one.
#if defined(__GNUC__)
__attribute__((__format__(__printf__, 2, 3)))
#endif
TAMARACK_LEVELDB_INLINE void Log(Logger* info_log, const char* format, ...);

// A file of these bytes; after an error it is removed.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE Status WriteStringToFile(Env* env, const Slice& data,
                                                                const std::string& name);

// What is in a file.
LEVELDB_EXPORT TAMARACK_LEVELDB_INLINE Status ReadFileToString(Env* env, const std::string& name,
                                                               std::string* data);

// An Env that asks another one, to derive from where only some functions are to be different.
class LEVELDB_EXPORT EnvWrapper : public Env {
 public:
  // Asks t, which must outlive it.
  explicit EnvWrapper(Env* t) : target_(t) {}
  TAMARACK_LEVELDB_INLINE virtual ~EnvWrapper();

  Env* target() const { return target_; }

  Status NewSequentialFile(const std::string& f, SequentialFile** r) override {
    return target_->NewSequentialFile(f, r);
  }
  Status NewRandomAccessFile(const std::string& f, RandomAccessFile** r) override {
    return target_->NewRandomAccessFile(f, r);
  }
  Status NewWritableFile(const std::string& f, WritableFile** r) override {
    return target_->NewWritableFile(f, r);
  }
  Status NewAppendableFile(const std::string& f, WritableFile** r) override {
    return target_->NewAppendableFile(f, r);
  }
  bool FileExists(const std::string& f) override { return target_->FileExists(f); }
  Status GetChildren(const std::string& d, std::vector<std::string>* r) override {
    return target_->GetChildren(d, r);
  }
  Status RemoveFile(const std::string& f) override { return target_->RemoveFile(f); }
  Status CreateDir(const std::string& d) override { return target_->CreateDir(d); }
  Status RemoveDir(const std::string& d) override { return target_->RemoveDir(d); }
  Status GetFileSize(const std::string& f, uint64_t* s) override { return target_->GetFileSize(f, s); }
  Status RenameFile(const std::string& s, const std::string& t) override { return target_->RenameFile(s, t); }
  Status LockFile(const std::string& f, FileLock** l) override { return target_->LockFile(f, l); }
  Status UnlockFile(FileLock* l) override { return target_->UnlockFile(l); }
  void Schedule(void (*f)(void*), void* a) override { target_->Schedule(f, a); }
  void StartThread(void (*f)(void*), void* a) override { target_->StartThread(f, a); }
  Status GetTestDirectory(std::string* p) override { return target_->GetTestDirectory(p); }
  Status NewLogger(const std::string& f, Logger** r) override { return target_->NewLogger(f, r); }
  uint64_t NowMicros() override { return target_->NowMicros(); }
  void SleepForMicroseconds(int m) override { target_->SleepForMicroseconds(m); }

 private:
  Env* target_;
};

}  // namespace leveldb

#include "tamarack/leveldb/posix_env.h"

namespace leveldb {

TAMARACK_LEVELDB_INLINE Env::Env() {}
TAMARACK_LEVELDB_INLINE Env::~Env() {}
TAMARACK_LEVELDB_INLINE SequentialFile::~SequentialFile() {}
TAMARACK_LEVELDB_INLINE RandomAccessFile::~RandomAccessFile() {}
TAMARACK_LEVELDB_INLINE WritableFile::~WritableFile() {}
TAMARACK_LEVELDB_INLINE Logger::~Logger() {}
TAMARACK_LEVELDB_INLINE FileLock::~FileLock() {}
TAMARACK_LEVELDB_INLINE EnvWrapper::~EnvWrapper() {}

TAMARACK_LEVELDB_INLINE Env* Env::Default() {
  // Never destroyed, for its thread and files that programs have may outlive main.
  static Env* const env = new tamarack::leveldb_v1::PosixEnv;
  return env;
}

TAMARACK_LEVELDB_INLINE Status Env::NewAppendableFile(const std::string& name, WritableFile**) {
  return Status::NotSupported("NewAppendableFile", name);
}

TAMARACK_LEVELDB_INLINE Status Env::RemoveFile(const std::string& name) { return DeleteFile(name); }
TAMARACK_LEVELDB_INLINE Status Env::DeleteFile(const std::string& name) { return RemoveFile(name); }
TAMARACK_LEVELDB_INLINE Status Env::RemoveDir(const std::string& name) { return DeleteDir(name); }
TAMARACK_LEVELDB_INLINE Status Env::DeleteDir(const std::string& name) { return RemoveDir(name); }

TAMARACK_LEVELDB_INLINE void Log(Logger* info_log, const char* format, ...) {
  if (info_log == nullptr) return;
  std::va_list arguments;
  va_start(arguments, format);
  info_log->Logv(format, arguments);
  va_end(arguments);
}

TAMARACK_LEVELDB_INLINE Status WriteStringToFile(Env* env, const Slice& data, const std::string& name) {
  WritableFile* file = nullptr;
  Status status = env->NewWritableFile(name, &file);
  if (!status.ok()) return status;
  status = file->Append(data);
  if (status.ok()) status = file->Close();
  delete file;
  if (!status.ok()) env->RemoveFile(name);
  return status;
}

TAMARACK_LEVELDB_INLINE Status ReadFileToString(Env* env, const std::string& name, std::string* data) {
  data->clear();
  SequentialFile* file = nullptr;
  Status status = env->NewSequentialFile(name, &file);
  if (!status.ok()) return status;
  std::vector<char> scratch(static_cast<size_t>(64) << 10);
  Slice piece;
  do {
    status = file->Read(scratch.size(), &piece, scratch.data());
    if (status.ok()) data->append(piece.data(), piece.size());
  } while (status.ok() && !piece.empty());
  delete file;
  return status;
}

}  // namespace leveldb

#endif
