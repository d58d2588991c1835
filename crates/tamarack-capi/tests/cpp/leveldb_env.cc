// Env::Default(): files, directories, locks, threads, time, loggers.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "leveldb/env.h"

using namespace leveldb;

static Env* const env = Env::Default();

static void sequential_files() {
  const std::string name = check::Fresh("env-file");
  SequentialFile* missing = nullptr;
  const Status status = env->NewSequentialFile(name, &missing);
  CHECK(status.IsNotFound() && missing == nullptr && status.ToString().find(name) != std::string::npos);
  CHECK_OK(WriteStringToFile(env, "0123456789", name));
  SequentialFile* opened = nullptr;
  CHECK_OK(env->NewSequentialFile(name, &opened));
  const std::unique_ptr<SequentialFile> file(opened);
  char scratch[100];
  Slice read;
  CHECK_OK(file->Read(3, &read, scratch));
  CHECK_EQUAL(read.ToString(), "012");
  CHECK_OK(file->Skip(2));
  CHECK_OK(file->Read(100, &read, scratch));
  CHECK_EQUAL(read.ToString(), "56789");
  CHECK_OK(file->Read(1, &read, scratch));
  CHECK(read.empty());
  CHECK_OK(file->Skip(1000));
  CHECK_OK(file->Read(1, &read, scratch));
  CHECK(read.empty());
}

static void random_access_files() {
  const std::string name = check::Fresh("env-file");
  RandomAccessFile* opened = nullptr;
  CHECK(env->NewRandomAccessFile(name + "-not", &opened).IsNotFound() && opened == nullptr);
  CHECK_OK(env->NewRandomAccessFile(name, &opened));
  const std::unique_ptr<RandomAccessFile> file(opened);
  char scratch[100];
  Slice read;
  CHECK_OK(file->Read(7, 3, &read, scratch));
  CHECK_EQUAL(read.ToString(), "789");
  CHECK_OK(file->Read(0, 2, &read, scratch));
  CHECK_EQUAL(read.ToString(), "01");
}

static void writable_files() {
  const std::string name = check::Fresh("env-written");
  WritableFile* opened = nullptr;
  CHECK(!env->NewWritableFile(check::Fresh("no/such/directory"), &opened).ok() && opened == nullptr);
  CHECK_OK(env->NewWritableFile(name, &opened));
  std::unique_ptr<WritableFile> file(opened);
  std::string expected;
  uint64_t size = 0;
  for (size_t bytes : {0u, 10u, 60000u, 10000u, 200000u, 65536u, 1u}) {
    const std::string piece(bytes, static_cast<char>('a' + bytes % 26));
    CHECK_OK(file->Append(piece));
    expected += piece;
  }
  CHECK_OK(file->Flush());
  CHECK_OK(env->GetFileSize(name, &size));
  CHECK_EQUAL(size, expected.size());
  CHECK_OK(file->Sync());
  CHECK_OK(file->Append("end"));
  CHECK_OK(file->Close());
  file.reset();
  CHECK_OK(env->NewAppendableFile(name, &opened));
  file.reset(opened);
  CHECK_OK(file->Append("more"));
  // What is not closed is written when it is deleted.
  file.reset();
  std::string found;
  CHECK_OK(ReadFileToString(env, name, &found));
  CHECK(found == expected + "endmore");
  CHECK_OK(WriteStringToFile(env, "", name));
  CHECK_OK(ReadFileToString(env, name, &found));
  CHECK_EQUAL(found, "");
  CHECK(ReadFileToString(env, name + "-not", &found).IsNotFound());
}

static void directories() {
  const std::string directory = check::Fresh("env-directory"), file = directory + "/file",
                    other = directory + "/other";
  std::vector<std::string> children;
  CHECK(!env->FileExists(directory));
  CHECK(!env->GetChildren(directory, &children).ok());
  CHECK_OK(env->CreateDir(directory));
  CHECK(env->CreateDir(directory).IsIOError() && env->FileExists(directory));
  CHECK_OK(WriteStringToFile(env, "text", file));
  CHECK_OK(WriteStringToFile(env, "other", other));
  children = {"before"};
  CHECK_OK(env->GetChildren(directory, &children));
  std::sort(children.begin(), children.end());
  CHECK(children == (std::vector<std::string>{".", "..", "file", "other"}));
  CHECK(!env->RemoveDir(directory).ok());
  CHECK_OK(env->RenameFile(file, other));
  uint64_t size = 7;
  CHECK(!env->FileExists(file) && env->GetFileSize(file, &size).IsNotFound());
  CHECK_EQUAL(size, 0u);
  CHECK_OK(env->GetFileSize(other, &size));
  CHECK_EQUAL(size, 4u);
  CHECK(env->RenameFile(file, other).IsNotFound() && env->RemoveFile(file).IsNotFound());
  CHECK_OK(env->RemoveFile(other));
  CHECK_OK(env->RemoveDir(directory));
  CHECK(!env->FileExists(directory) && env->RemoveDir(directory).IsNotFound());
  std::string tests;
  CHECK_OK(env->GetTestDirectory(&tests));
  CHECK(env->FileExists(tests));
}

static void locks() {
  const std::string name = check::Fresh("env-lock");
  FileLock *lock = nullptr, *second = nullptr;
  CHECK_OK(env->LockFile(name, &lock));
  CHECK(env->FileExists(name) && lock != nullptr);
  CHECK(env->LockFile(name, &second).IsIOError() && second == nullptr);
  CHECK_OK(env->UnlockFile(lock));
  CHECK_OK(env->LockFile(name, &lock));
  CHECK_OK(env->UnlockFile(lock));
  CHECK(!env->LockFile(check::Fresh("no/such/directory"), &second).ok() && second == nullptr);
  // What could not be locked is not held.
  CHECK_OK(env->CreateDir(check::Fresh("locks")));
  const std::string inside = check::Fresh("locks/inside/file");
  CHECK(!env->LockFile(inside, &second).ok());
  CHECK_OK(env->CreateDir(check::Fresh("locks/inside")));
  CHECK_OK(env->LockFile(inside, &second));
  CHECK_OK(env->UnlockFile(second));
}

static std::atomic<int> done;
static std::vector<int> order;

static void threads() {
  for (int number = 0; number < 100; number++) {
    // In their order, one at a time.
    env->Schedule(
        [](void* argument) {
          order.push_back(static_cast<int>(reinterpret_cast<intptr_t>(argument)));
          done++;
        },
        reinterpret_cast<void*>(static_cast<intptr_t>(number)));
  }
  std::atomic<int> started(0);
  for (int number = 0; number < 3; number++) {
    env->StartThread([](void* argument) { (*static_cast<std::atomic<int>*>(argument))++; }, &started);
  }
  const uint64_t begin = env->NowMicros();
  while (done < 100 || started < 3) env->SleepForMicroseconds(1000);
  CHECK(env->NowMicros() >= begin + 1000 || order.size() == 100);
  for (int number = 0; number < 100; number++) CHECK_EQUAL(order[static_cast<size_t>(number)], number);
}

static void loggers() {
  const std::string name = check::Fresh("env-log");
  Logger* opened = nullptr;
  CHECK(!env->NewLogger(check::Fresh("no/such/directory"), &opened).ok());
  CHECK_OK(env->NewLogger(name, &opened));
  const std::unique_ptr<Logger> logger(opened);
  check::Tell(logger.get(), "a line with %d", 1);
  check::Tell(logger.get(), "with an end\n");
  const std::string large(5000, 'l');
  check::Tell(logger.get(), "%s", large.c_str());
  std::string text;
  CHECK_OK(ReadFileToString(env, name, &text));
  CHECK(text.find(" a line with 1\n") != std::string::npos &&
        text.find(" with an end\n") != std::string::npos);
  CHECK(text.find(" " + large + "\n") != std::string::npos);
  CHECK_EQUAL(std::count(text.begin(), text.end(), '\n'), 3);
  // A date first: 2022/12/31-
  CHECK(text.size() > 11 && text[4] == '/' && text[7] == '/' && text[10] == '-');
}

void env_suite() {
  CHECK(Env::Default() == env && Options().env == env);
  sequential_files();
  random_access_files();
  writable_files();
  directories();
  locks();
  threads();
  loggers();
}
