// Objects lie in memory as in LevelDB 1.23, so that programs that were compiled with its headers and those
// that were compiled with ours can be linked with the same library. The numbers are those of machines with 64
// bits.

#include <cstddef>
#include <cstdint>
#include <string>

#include "check.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/write_batch.h"

using namespace leveldb;

void layout_suite() {
  if (sizeof(void*) != 8) return;
  static_assert(kMajorVersion == 1 && kMinorVersion == 23, "the version of the interface");
  CHECK_EQUAL(sizeof(Slice), 16u);
  CHECK_EQUAL(sizeof(Status), 8u);
  CHECK_EQUAL(sizeof(WriteBatch), sizeof(std::string));
  CHECK_EQUAL(sizeof(Range), 32u);
  CHECK_EQUAL(sizeof(Iterator), 40u);
  CHECK_EQUAL(sizeof(Cache), 16u);
  CHECK_EQUAL(sizeof(EnvWrapper), 16u);
  CHECK(sizeof(DB) == 8 && sizeof(Env) == 8 && sizeof(Comparator) == 8 && sizeof(FilterPolicy) == 8);
  CHECK(sizeof(Logger) == 8 && sizeof(FileLock) == 8 && sizeof(WritableFile) == 8 &&
        sizeof(WriteBatch::Handler) == 8);
  CHECK_EQUAL(sizeof(Options), 96u);
  CHECK_EQUAL(offsetof(Options, comparator), 0u);
  CHECK_EQUAL(offsetof(Options, create_if_missing), 8u);
  CHECK_EQUAL(offsetof(Options, error_if_exists), 9u);
  CHECK_EQUAL(offsetof(Options, paranoid_checks), 10u);
  CHECK_EQUAL(offsetof(Options, env), 16u);
  CHECK_EQUAL(offsetof(Options, info_log), 24u);
  CHECK_EQUAL(offsetof(Options, write_buffer_size), 32u);
  CHECK_EQUAL(offsetof(Options, max_open_files), 40u);
  CHECK_EQUAL(offsetof(Options, block_cache), 48u);
  CHECK_EQUAL(offsetof(Options, block_size), 56u);
  CHECK_EQUAL(offsetof(Options, block_restart_interval), 64u);
  CHECK_EQUAL(offsetof(Options, max_file_size), 72u);
  CHECK_EQUAL(offsetof(Options, compression), 80u);
  CHECK_EQUAL(offsetof(Options, reuse_logs), 84u);
  CHECK_EQUAL(offsetof(Options, filter_policy), 88u);
  CHECK_EQUAL(sizeof(ReadOptions), 16u);
  CHECK_EQUAL(offsetof(ReadOptions, fill_cache), 1u);
  CHECK_EQUAL(offsetof(ReadOptions, snapshot), 8u);
  CHECK_EQUAL(sizeof(WriteOptions), 1u);
}
