//! The target `segment` of `tamarack::testing::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tamarack::testing::fuzz::run("segment", data));
