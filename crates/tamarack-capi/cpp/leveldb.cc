// LevelDB's C++ classes as a library: all functions of the headers, compiled once under LevelDB's names.
//
// For programs that were linked with LevelDB's own C++ library, such as Debian's libleveldb.so.1d, and are
// not compiled again. Programs that are compiled with our headers need nothing of it. `cargo xtask install`
// makes the library if there is a C++ compiler; exports.map beside this file says what of it is visible.

#define TAMARACK_COMPILES_LEVELDB

#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"
