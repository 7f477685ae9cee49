//! All fuzz targets in one program, so that it is linked once. `HOB_FUZZ_TARGET` chooses one; without it, the program lists them. For
//! long runs, `HOB_FUZZ_ONLY` makes a program of one target.
//!
//! A target takes any bytes, and panics if a promise of Hob is broken. libFuzzer finds the bytes: it changes inputs of the corpus and
//! keeps those that reach new code.

#![no_main]

mod documents;
mod gguf;
mod markdown;
mod office;
mod schedule;
mod signal_stack;
mod targets;
mod web_page;

libfuzzer_sys::fuzz_target!(
    init: targets::choose(),
    |input: &[u8]| {
        (targets::chosen().run)(input);
    }
);
