//! The exported functions, a file for each part of `leveldb/c.h` and two for `tamarack/c.h`. Every pointer arrives as
//! a type of `boundary`; nothing is unsafe here but the names, which the linker does not check.
#![expect(unsafe_code, reason = "a function that C calls has an unmangled name")]

mod batch;
mod database;
mod extension;
mod iterator;
mod maintenance;
mod management;
mod objects;
mod options;
mod reads;
