// See check.h.

#include "check.h"

#include <cstdarg>
#include <cstdlib>

namespace check {

static std::string root;

void Failed(const char* file, int line, const std::string& what) {
  std::cerr << file << ":" << line << ": does not hold: " << what << std::endl;
  std::exit(1);
}

void Ok(const char* file, int line, const leveldb::Status& status) {
  if (!status.ok()) Failed(file, line, status.ToString());
}

std::string Fresh(const std::string& name) { return root + "/" + name; }

leveldb::Options Creating() {
  leveldb::Options options;
  options.create_if_missing = true;
  return options;
}

Database Open(const std::string& name, const leveldb::Options& options) {
  leveldb::DB* db = nullptr;
  CHECK_OK(leveldb::DB::Open(options, Fresh(name), &db));
  CHECK(db != nullptr);
  return Database(db);
}

void Put(leveldb::DB* db, const leveldb::Slice& key, const leveldb::Slice& value) {
  CHECK_OK(db->Put(leveldb::WriteOptions(), key, value));
}

std::string Get(leveldb::DB* db, const leveldb::Slice& key, const leveldb::Snapshot* snapshot) {
  leveldb::ReadOptions options;
  options.snapshot = snapshot;
  std::string value = "before";
  const leveldb::Status status = db->Get(options, key, &value);
  if (status.IsNotFound()) return "NONE";
  CHECK_OK(status);
  return value;
}

std::string All(leveldb::DB* db, const leveldb::Snapshot* snapshot) {
  leveldb::ReadOptions options;
  options.snapshot = snapshot;
  const Walk walk(db->NewIterator(options));
  std::string all;
  for (walk->SeekToFirst(); walk->Valid(); walk->Next()) {
    if (!all.empty()) all += " ";
    all += At(walk.get());
  }
  CHECK_OK(walk->status());
  return all;
}

std::string At(const leveldb::Iterator* iterator) {
  if (!iterator->status().ok()) return iterator->status().ToString();
  if (!iterator->Valid()) return "NOWHERE";
  return iterator->key().ToString() + "=" + iterator->value().ToString();
}

void Tell(leveldb::Logger* logger, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  logger->Logv(format, arguments);
  va_end(arguments);
}

int Run(int argc, char** argv, const Suite* suites, size_t number) {
  if (argc < 2) {
    std::cerr << "usage: " << argv[0] << " DIRECTORY [SUITE]\n";
    return 2;
  }
  root = argv[1];
  size_t run = 0;
  for (size_t index = 0; index < number; index++) {
    if (argc > 2 && std::string(argv[2]) != suites[index].name) continue;
    suites[index].run();
    std::cout << suites[index].name << ": passed" << std::endl;
    run++;
  }
  if (run == 0) std::cerr << "there is no such suite\n";
  return run == 0;
}

}  // namespace check
