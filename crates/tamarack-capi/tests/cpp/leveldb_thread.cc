// Many threads in one database, with an order of the program's own, so that it is called by all of them.

#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "leveldb/comparator.h"
#include "leveldb/write_batch.h"

using namespace leveldb;

class Descending : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return b.compare(a); }
  const char* Name() const override { return "test.Descending"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

static const int kThreads = 4, kRounds = 300;

// Each writes its own keys, in pairs, and looks at moments in which pairs must be whole.
static void Work(DB* db, int thread) {
  const std::string own = std::to_string(thread) + "-";
  for (int round = 0; round < kRounds; round++) {
    const std::string number = std::to_string(round);
    WriteBatch batch;
    batch.Put(own + "left", number);
    batch.Put(own + "right", number);
    CHECK_OK(db->Write(WriteOptions(), &batch));
    check::Put(db, own + number, number);
    const Snapshot* snapshot = db->GetSnapshot();
    for (int other = 0; other < kThreads; other++) {
      const std::string theirs = std::to_string(other) + "-";
      CHECK_EQUAL(check::Get(db, theirs + "left", snapshot), check::Get(db, theirs + "right", snapshot));
    }
    db->ReleaseSnapshot(snapshot);
    if (round % 50 == 0) {
      const check::Walk walk(db->NewIterator(ReadOptions()));
      std::string before;
      for (walk->SeekToFirst(); walk->Valid(); walk->Next()) {
        CHECK(before.empty() || Slice(before).compare(walk->key()) > 0);
        before = walk->key().ToString();
      }
      CHECK_OK(walk->status());
    }
  }
}

void thread_suite() {
  const Descending descending;
  Options options = check::Creating();
  options.comparator = &descending;
  check::Database db = check::Open("thread", options);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; thread++) threads.emplace_back(Work, db.get(), thread);
  for (std::thread& thread : threads) thread.join();
  for (int thread = 0; thread < kThreads; thread++) {
    for (int round = 0; round < kRounds; round++) {
      const std::string number = std::to_string(round);
      CHECK_EQUAL(check::Get(db.get(), std::to_string(thread) + "-" + number), number);
    }
  }
}
