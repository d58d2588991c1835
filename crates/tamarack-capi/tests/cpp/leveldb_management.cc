// Opening, destroying and repairing: what is there, what is not, and who has it open.

#include <string>

#include "check.h"
#include "leveldb/env.h"

using namespace leveldb;

static void opening() {
  const std::string name = check::Fresh("management");
  DB* db = reinterpret_cast<DB*>(&db);
  Status status = DB::Open(Options(), name, &db);
  CHECK(status.IsInvalidArgument() && db == nullptr);
  CHECK(status.ToString().find("does not exist (create_if_missing is false)") != std::string::npos);
  CHECK(status.ToString().find(name) != std::string::npos);
  check::Database first = check::Open("management");
  status = DB::Open(check::Creating(), name, &db);
  CHECK(status.IsIOError() && db == nullptr);
  CHECK_EQUAL(status.ToString().substr(0, 15), "IO error: lock ");
  first.reset();
  Options options = check::Creating();
  options.error_if_exists = true;
  status = DB::Open(options, name, &db);
  CHECK(status.IsInvalidArgument() && db == nullptr);
  CHECK(status.ToString().find("exists (error_if_exists is true)") != std::string::npos);
  CHECK(!DB::Open(check::Creating(), "/dev/null/database", &db).ok() && db == nullptr);
}

static void every_option() {
  Options options = check::Creating();
  options.paranoid_checks = true;
  options.write_buffer_size = 1 << 20;
  options.max_open_files = 100;
  options.block_size = 8192;
  options.block_restart_interval = 4;
  options.max_file_size = 4 << 20;
  options.compression = kNoCompression;
  options.reuse_logs = true;
  for (int round = 0; round < 2; round++) {
    check::Database db = check::Open("management-options", options);
    CHECK_EQUAL(check::Get(db.get(), "key"), round == 0 ? "NONE" : "value");
    check::Put(db.get(), "key", "value");
    options.compression = kSnappyCompression;
  }
}

static void destroying() {
  const std::string name = check::Fresh("destroyed");
  CHECK_OK(DestroyDB(name, Options()));
  check::Put(check::Open("destroyed").get(), "key", "value");
  CHECK(Env::Default()->FileExists(name));
  {
    check::Database db = check::Open("destroyed");
    CHECK(!DestroyDB(name, Options()).ok());
    CHECK_EQUAL(check::Get(db.get(), "key"), "value");
  }
  CHECK_OK(WriteStringToFile(Env::Default(), "mine", name + "/a file of somebody else"));
  CHECK_OK(DestroyDB(name, Options()));
  std::string text;
  CHECK_OK(ReadFileToString(Env::Default(), name + "/a file of somebody else", &text));
  CHECK_EQUAL(text, "mine");
  CHECK_EQUAL(check::Get(check::Open("destroyed").get(), "key"), "NONE");
}

static void repairing() {
  check::Put(check::Open("repaired").get(), "key", "value");
  CHECK_OK(RepairDB(check::Fresh("repaired"), Options()));
  CHECK_EQUAL(check::Get(check::Open("repaired").get(), "key"), "value");
}

void management_suite() {
  opening();
  every_option();
  destroying();
  repairing();
}
