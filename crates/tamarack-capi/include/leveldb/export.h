// What is visible outside a shared library, and where the functions of these headers are compiled. For every
// header in this directory; declares nothing.
//
// The headers are complete: each function is inline and ends in calls to <leveldb/c.h>, so a program needs
// the C library alone, whatever its compiler, its C++ library and its flags. One file of Tamarack's
// (crates/tamarack-capi/cpp/leveldb.cc) compiles the same functions once more, not inline, for programs that
// were linked with LevelDB's own C++ library before.

#ifndef TAMARACK_LEVELDB_EXPORT_H
#define TAMARACK_LEVELDB_EXPORT_H

// A program may define it to be something else. The attribute also makes sure that Env::Default() and
// BytewiseComparator() are the same in all parts of a process, even those compiled with -fvisibility=hidden.
#if !defined(LEVELDB_EXPORT)
#if defined(__GNUC__)
#define LEVELDB_EXPORT __attribute__((visibility("default")))
#else
#define LEVELDB_EXPORT
#endif
#endif

#if defined(TAMARACK_COMPILES_LEVELDB)
#define TAMARACK_LEVELDB_INLINE
#else
#define TAMARACK_LEVELDB_INLINE inline
#endif

#endif
