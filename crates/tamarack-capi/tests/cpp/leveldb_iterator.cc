// Iterator: where it stands, what it sees, and what is called when it goes.

#include <string>

#include "check.h"

using namespace leveldb;

static void moves() {
  check::Database db = check::Open("iterator");
  check::Walk over_nothing(db->NewIterator(ReadOptions()));
  CHECK_EQUAL(check::At(over_nothing.get()), "NOWHERE");
  over_nothing->SeekToFirst();
  CHECK_EQUAL(check::At(over_nothing.get()), "NOWHERE");
  over_nothing->SeekToLast();
  CHECK_EQUAL(check::At(over_nothing.get()), "NOWHERE");
  for (const char* key : {"b", "a", "c"}) check::Put(db.get(), key, std::string("v") + key);
  over_nothing->SeekToFirst();
  CHECK_EQUAL(check::At(over_nothing.get()), "NOWHERE");

  check::Walk walk(db->NewIterator(ReadOptions()));
  CHECK(!walk->Valid());
  walk->SeekToFirst();
  CHECK_EQUAL(check::At(walk.get()), "a=va");
  walk->Next();
  CHECK_EQUAL(check::At(walk.get()), "b=vb");
  walk->Next();
  walk->Prev();
  CHECK_EQUAL(check::At(walk.get()), "b=vb");
  walk->Seek("bb");
  CHECK_EQUAL(check::At(walk.get()), "c=vc");
  walk->Seek("b");
  CHECK_EQUAL(check::At(walk.get()), "b=vb");
  walk->Seek(Slice());
  CHECK_EQUAL(check::At(walk.get()), "a=va");
  walk->Prev();
  CHECK_EQUAL(check::At(walk.get()), "NOWHERE");
  walk->SeekToLast();
  CHECK_EQUAL(check::At(walk.get()), "c=vc");
  walk->Next();
  CHECK_EQUAL(check::At(walk.get()), "NOWHERE");
  walk->Seek("d");
  CHECK_EQUAL(check::At(walk.get()), "NOWHERE");
  CHECK_OK(walk->status());
}

static void it_sees_one_moment() {
  check::Database db = check::Open("iterator-moment");
  for (int number = 100; number < 400; number++)
    check::Put(db.get(), std::to_string(number), std::string(2000, 'v'));
  check::Walk walk(db->NewIterator(ReadOptions()));
  for (int number = 100; number < 400; number++) CHECK_OK(db->Delete(WriteOptions(), std::to_string(number)));
  db->CompactRange(nullptr, nullptr);
  int number = 100;
  for (walk->SeekToFirst(); walk->Valid(); walk->Next(), number++) {
    CHECK_EQUAL(walk->key().ToString(), std::to_string(number));
    CHECK_EQUAL(walk->value().size(), 2000u);
  }
  CHECK_EQUAL(number, 400);
  for (walk->SeekToLast(); walk->Valid(); walk->Prev())
    CHECK_EQUAL(walk->key().ToString(), std::to_string(--number));
  CHECK_EQUAL(number, 100);
}

static std::string called;

static void Note(void* first, void* second) {
  called += static_cast<const char*>(first);
  called += static_cast<const char*>(second);
}

static void* Text(const char* text) { return const_cast<char*>(text); }

static void cleanups_are_called() {
  check::Database db = check::Open("iterator-cleanup");
  check::Walk walk(db->NewIterator(ReadOptions()));
  walk->RegisterCleanup(&Note, Text("a"), Text("1"));
  walk.reset();
  CHECK_EQUAL(called, "a1");
  called.clear();
  walk.reset(NewEmptyIterator());
  walk->RegisterCleanup(&Note, Text("a"), Text("1"));
  walk->RegisterCleanup(&Note, Text("b"), Text("2"));
  walk->RegisterCleanup(&Note, Text("c"), Text("3"));
  CHECK_EQUAL(called, "");
  walk.reset();
  // The first, then the others, the last of them first.
  CHECK_EQUAL(called, "a1c3b2");
}

static void over_nothing() {
  check::Walk empty(NewEmptyIterator()), failed(NewErrorIterator(Status::Corruption("why")));
  for (Iterator* walk : {empty.get(), failed.get()}) {
    walk->SeekToFirst();
    CHECK(!walk->Valid());
    walk->SeekToLast();
    CHECK(!walk->Valid());
    walk->Seek("key");
    CHECK(!walk->Valid());
  }
  CHECK_OK(empty->status());
  CHECK_EQUAL(failed->status().ToString(), "Corruption: why");
}

void iterator_suite() {
  moves();
  it_sees_one_moment();
  cleanups_are_called();
  over_nothing();
}
