// WriteBatch: what it holds, tells and writes.

#include <string>

#include "check.h"
#include "leveldb/write_batch.h"

using namespace leveldb;

class Teller : public WriteBatch::Handler {
 public:
  void Put(const Slice& key, const Slice& value) override {
    told += "put(" + key.ToString() + "," + value.ToString() + ")";
  }
  void Delete(const Slice& key) override { told += "delete(" + key.ToString() + ")"; }
  std::string told;
};

static std::string Told(const WriteBatch& batch) {
  Teller teller;
  CHECK_OK(batch.Iterate(&teller));
  return teller.told;
}

static void operations() {
  WriteBatch batch;
  CHECK_EQUAL(Told(batch), "");
  const size_t empty = batch.ApproximateSize();
  batch.Put("a", "1");
  const size_t one = batch.ApproximateSize();
  batch.Delete("b");
  batch.Put("", "");
  batch.Delete("");
  batch.Put(Slice("k\0y", 3), Slice("v\0e", 3));
  CHECK(empty < one && one < batch.ApproximateSize());
  CHECK_EQUAL(Told(batch), std::string("put(a,1)delete(b)put(,)delete()put(k\0y,v\0e)", 43));
  WriteBatch copy(batch), assigned;
  assigned.Put("gone", "gone");
  assigned = batch;
  batch.Clear();
  CHECK_EQUAL(Told(batch), "");
  CHECK_EQUAL(batch.ApproximateSize(), empty);
  CHECK_EQUAL(Told(copy), Told(assigned));
  batch.Put("c", "3");
  batch.Append(WriteBatch());
  batch.Append(batch);
  CHECK_EQUAL(Told(batch), "put(c,3)put(c,3)");
  WriteBatch other;
  other.Delete("d");
  batch.Append(other);
  CHECK_EQUAL(Told(batch), "put(c,3)put(c,3)delete(d)");
  CHECK_EQUAL(Told(other), "delete(d)");
}

// Lengths of one to four bytes.
static void sizes() {
  WriteBatch batch;
  for (size_t size : {127u, 128u, 16383u, 16384u, 2097151u, 2097152u}) {
    batch.Clear();
    const std::string value(size, 'v');
    batch.Put("k", value);
    batch.Delete("end");
    CHECK(Told(batch) == "put(k," + value + ")delete(end)");
  }
}

static void written() {
  check::Database db = check::Open("batch");
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "2");
  batch.Delete("a");
  batch.Put("c", std::string(100000, 'c'));
  WriteOptions sync;
  sync.sync = true;
  CHECK_OK(db->Write(sync, &batch));
  CHECK_EQUAL(check::Get(db.get(), "a"), "NONE");
  CHECK_EQUAL(check::Get(db.get(), "b"), "2");
  CHECK_EQUAL(check::Get(db.get(), "c").size(), 100000u);
  // It stays as it is, and may be written again.
  batch.Delete("c");
  CHECK_OK(db->Write(WriteOptions(), &batch));
  CHECK_EQUAL(check::All(db.get()), "b=2");
  WriteBatch empty;
  CHECK_OK(db->Write(WriteOptions(), &empty));
  CHECK_EQUAL(check::All(db.get()), "b=2");
}

void batch_suite() {
  operations();
  sizes();
  written();
}
