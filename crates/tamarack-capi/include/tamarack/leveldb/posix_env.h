// The operating system as a leveldb::Env. Included by <leveldb/env.h> alone, behind its classes; programs use
// Env::Default().

#ifndef TAMARACK_LEVELDB_POSIX_ENV_H
#define TAMARACK_LEVELDB_POSIX_ENV_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leveldb/c.h"
#include "tamarack/leveldb/posix_files.h"
#include "tamarack/leveldb/posix_logger.h"

namespace tamarack {
namespace leveldb_v1 {

// The lock of a file. The operating system tells it from those of other processes; that of this one is in a
// set of names, because the system lets a process lock twice.
class PosixLock final : public leveldb::FileLock {
 public:
  PosixLock(const std::string& name, int number) : file_(name, number) {}

  const Descriptor& file() const { return file_; }

 private:
  const Descriptor file_;
};

class PosixEnv final : public leveldb::Env {
 public:
  leveldb::Status NewSequentialFile(const std::string& name, leveldb::SequentialFile** result) override {
    return Open<PosixSequentialFile>(name, O_RDONLY, result);
  }

  leveldb::Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** result) override {
    return Open<PosixRandomAccessFile>(name, O_RDONLY, result);
  }

  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** result) override {
    return Open<PosixWritableFile>(name, O_WRONLY | O_CREAT | O_TRUNC, result);
  }

  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** result) override {
    return Open<PosixWritableFile>(name, O_WRONLY | O_CREAT | O_APPEND, result);
  }

  bool FileExists(const std::string& name) override { return ::access(name.c_str(), F_OK) == 0; }

  leveldb::Status GetChildren(const std::string& directory, std::vector<std::string>* result) override {
    result->clear();
    ::DIR* stream = ::opendir(directory.c_str());
    if (stream == nullptr) return PosixError(directory, errno);
    // The end and an error are told apart by errno alone.
    errno = 0;
    while (const struct ::dirent* entry = ::readdir(stream)) result->emplace_back(entry->d_name);
    const int number = errno;
    ::closedir(stream);
    return number == 0 ? leveldb::Status::OK() : PosixError(directory, number);
  }

  leveldb::Status RemoveFile(const std::string& name) override { return Done(name, ::unlink(name.c_str())); }
  leveldb::Status CreateDir(const std::string& name) override {
    return Done(name, ::mkdir(name.c_str(), 0755));
  }
  leveldb::Status RemoveDir(const std::string& name) override { return Done(name, ::rmdir(name.c_str())); }

  leveldb::Status GetFileSize(const std::string& name, uint64_t* size) override {
    struct ::stat found;
    *size = 0;
    if (::stat(name.c_str(), &found) != 0) return PosixError(name, errno);
    *size = static_cast<uint64_t>(found.st_size);
    return leveldb::Status::OK();
  }

  leveldb::Status RenameFile(const std::string& source, const std::string& target) override {
    return Done(source, std::rename(source.c_str(), target.c_str()));
  }

  leveldb::Status LockFile(const std::string& name, leveldb::FileLock** lock) override {
    *lock = nullptr;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (!locked_.insert(name).second) {
        return leveldb::Status::IOError("lock " + name, "already held by this process");
      }
    }
    const int number = Descriptor::Open(name, O_RDWR | O_CREAT);
    if (number < 0 || !SetLock(number, F_WRLCK)) {
      const leveldb::Status status = PosixError("lock " + name, errno);
      if (number >= 0) ::close(number);
      Forget(name);
      return status;
    }
    *lock = new PosixLock(name, number);
    return leveldb::Status::OK();
  }

  leveldb::Status UnlockFile(leveldb::FileLock* lock) override {
    PosixLock* const held = static_cast<PosixLock*>(lock);
    leveldb::Status status;
    if (!SetLock(held->file().number(), F_UNLCK)) status = PosixError("unlock " + held->file().name(), errno);
    // The descriptor first: closing one takes away every lock that this process has on the file, a later one as well.
    const std::string name = held->file().name();
    delete held;
    Forget(name);
    return status;
  }

  void Schedule(void (*function)(void* argument), void* argument) override {
    std::lock_guard<std::mutex> guard(mutex_);
    work_.emplace_back(function, argument);
    if (!works_) {
      works_ = true;
      std::thread(&PosixEnv::Work, this).detach();
    }
    more_work_.notify_one();
  }

  void StartThread(void (*function)(void* argument), void* argument) override {
    std::thread(function, argument).detach();
  }

  leveldb::Status GetTestDirectory(std::string* path) override {
    leveldb_env_t* env = leveldb_create_default_env();
    char* text = leveldb_env_get_test_directory(env);
    leveldb_env_destroy(env);
    if (text == nullptr) return leveldb::Status::IOError("a directory for tests cannot be made");
    path->assign(text);
    leveldb_free(text);
    return leveldb::Status::OK();
  }

  leveldb::Status NewLogger(const std::string& name, leveldb::Logger** result) override {
    *result = nullptr;
    const int number = Descriptor::Open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
    if (number < 0) return PosixError(name, errno);
    std::FILE* file = ::fdopen(number, "a");
    if (file == nullptr) {
      const leveldb::Status status = PosixError(name, errno);
      ::close(number);
      return status;
    }
    *result = new PosixLogger(file);
    return leveldb::Status::OK();
  }

  uint64_t NowMicros() override {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since).count());
  }

  void SleepForMicroseconds(int micros) override {
    std::this_thread::sleep_for(std::chrono::microseconds(micros));
  }

 private:
  template <typename File, typename Base>
  static leveldb::Status Open(const std::string& name, int flags, Base** result) {
    *result = nullptr;
    const int number = Descriptor::Open(name, flags);
    if (number < 0) return PosixError(name, errno);
    *result = new File(name, number);
    return leveldb::Status::OK();
  }

  static leveldb::Status Done(const std::string& name, int returned) {
    return returned == 0 ? leveldb::Status::OK() : PosixError(name, errno);
  }

  static bool SetLock(int number, short kind) {
    struct ::flock lock;
    std::memset(&lock, 0, sizeof lock);
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    return ::fcntl(number, F_SETLK, &lock) == 0;
  }

  void Forget(const std::string& name) {
    std::lock_guard<std::mutex> guard(mutex_);
    locked_.erase(name);
  }

  // The background thread. It never ends: nobody destroys the Env.
  void Work() {
    for (;;) {
      std::pair<void (*)(void*), void*> next;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        more_work_.wait(lock, [this] { return !work_.empty(); });
        next = work_.front();
        work_.pop_front();
      }
      next.first(next.second);
    }
  }

  std::mutex mutex_;
  std::condition_variable more_work_;
  std::deque<std::pair<void (*)(void*), void*>> work_;
  bool works_ = false;
  std::set<std::string> locked_;
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
