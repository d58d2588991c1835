// Classes that programs derive: databases of their own for tests, iterators, handlers, environments, loggers.

#include <cstdarg>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "leveldb/env.h"
#include "leveldb/write_batch.h"

using namespace leveldb;

// A database in a map, as programs use it in place of a real one.
class Fake : public DB {
 public:
  using Entries = std::map<std::string, std::string>;

  // What DB itself does with one operation.
  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    return DB::Put(options, key, value);
  }
  Status Delete(const WriteOptions& options, const Slice& key) override { return DB::Delete(options, key); }

  Status Write(const WriteOptions&, WriteBatch* updates) override {
    Into into(&entries_);
    return updates->Iterate(&into);
  }
  Status Get(const ReadOptions&, const Slice& key, std::string* value) override {
    const auto found = entries_.find(key.ToString());
    if (found == entries_.end()) return Status::NotFound("nothing", key);
    *value = found->second;
    return Status::OK();
  }
  Iterator* NewIterator(const ReadOptions&) override { return new Walk(&entries_); }
  const Snapshot* GetSnapshot() override { return nullptr; }
  void ReleaseSnapshot(const Snapshot*) override {}
  bool GetProperty(const Slice& property, std::string* value) override {
    *value = property.ToString();
    return property == "fake";
  }
  void GetApproximateSizes(const Range*, int n, uint64_t* sizes) override {
    for (int index = 0; index < n; index++) sizes[index] = 1;
  }
  void CompactRange(const Slice*, const Slice*) override { compacted = true; }

  bool compacted = false;

 private:
  class Into : public WriteBatch::Handler {
   public:
    explicit Into(Entries* entries) : entries_(entries) {}
    void Put(const Slice& key, const Slice& value) override {
      (*entries_)[key.ToString()] = value.ToString();
    }
    void Delete(const Slice& key) override { entries_->erase(key.ToString()); }

   private:
    Entries* const entries_;
  };

  class Walk : public Iterator {
   public:
    explicit Walk(const Entries* entries) : entries_(entries), at_(entries->end()) {}
    bool Valid() const override { return at_ != entries_->end(); }
    void SeekToFirst() override { at_ = entries_->begin(); }
    void SeekToLast() override { at_ = entries_->empty() ? entries_->end() : std::prev(entries_->end()); }
    void Seek(const Slice& target) override { at_ = entries_->lower_bound(target.ToString()); }
    void Next() override { ++at_; }
    void Prev() override { at_ = at_ == entries_->begin() ? entries_->end() : std::prev(at_); }
    Slice key() const override { return at_->first; }
    Slice value() const override { return at_->second; }
    Status status() const override { return Status::OK(); }

   private:
    const Entries* const entries_;
    Entries::const_iterator at_;
  };

  Entries entries_;
};

// Uses the class as those who do not know which one it is.
static void Use(DB* db) {
  check::Put(db, "a", "1");
  check::Put(db, "b", "2");
  CHECK_OK(db->Delete(WriteOptions(), "a"));
  WriteBatch batch;
  batch.Put("c", "3");
  CHECK_OK(db->Write(WriteOptions(), &batch));
  CHECK_EQUAL(check::All(db), "b=2 c=3");
  CHECK_EQUAL(check::Get(db, "a"), "NONE");
  uint64_t size = 0;
  const Range range("a", "z");
  db->GetApproximateSizes(&range, 1, &size);
  db->ReleaseSnapshot(db->GetSnapshot());
  db->CompactRange(nullptr, nullptr);
}

static void databases() {
  Use(check::Open("derived").get());
  auto* fake = new Fake;
  const check::Database db(fake);
  Use(fake);
  CHECK(fake->compacted);
  std::string value;
  CHECK(db->GetProperty("fake", &value) && !db->GetProperty("other", &value));
}

// What both names of a function come to, and which of them is asked.
class Removing : public EnvWrapper {
 public:
  explicit Removing(Env* env) : EnvWrapper(env) {}
  Status RemoveFile(const std::string& name) override {
    removed.push_back(name);
    return EnvWrapper::RemoveFile(name);
  }
  Status RemoveDir(const std::string& name) override { return Status::NotSupported(name); }
  uint64_t NowMicros() override { return 42; }
  std::vector<std::string> removed;
};

class Lines : public Logger {
 public:
  void Logv(const char* format, std::va_list arguments) override {
    char line[100];
    std::vsnprintf(line, sizeof line, format, arguments);
    lines += std::string(line) + ";";
  }
  std::string lines;
};

static void environments() {
  Removing env(Env::Default());
  CHECK(env.target() == Env::Default());
  CHECK_EQUAL(env.NowMicros(), 42u);
  const std::string name = check::Fresh("derived-file");
  CHECK_OK(WriteStringToFile(&env, "text", name));
  CHECK(env.FileExists(name));
  CHECK_OK(env.DeleteFile(name));
  CHECK(!env.FileExists(name) && env.removed == std::vector<std::string>{name});
  CHECK(env.DeleteDir("x").IsNotSupportedError());
  Lines lines;
  check::Tell(&lines, "%s %d", "a", 1);
  check::Tell(&lines, "b");
  CHECK_EQUAL(lines.lines, "a 1;b;");
}

// An Env with the former names alone.
class Former : public EnvWrapper {
 public:
  Former() : EnvWrapper(Env::Default()) {}
  Status RemoveFile(const std::string& name) override { return Env::RemoveFile(name); }
  Status RemoveDir(const std::string& name) override { return Env::RemoveDir(name); }
  Status DeleteFile(const std::string& name) override { return Status::IOError("file", name); }
  Status DeleteDir(const std::string& name) override { return Status::IOError("dir", name); }
  Status NewAppendableFile(const std::string& name, WritableFile** file) override {
    return Env::NewAppendableFile(name, file);
  }
};

static void former_names() {
  Former env;
  CHECK_EQUAL(env.RemoveFile("a").ToString(), "IO error: file: a");
  CHECK_EQUAL(env.RemoveDir("b").ToString(), "IO error: dir: b");
  WritableFile* file = nullptr;
  CHECK(env.NewAppendableFile("c", &file).IsNotSupportedError());
}

void derived_suite() {
  databases();
  environments();
  former_names();
}
