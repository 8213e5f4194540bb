#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trunkline::fuzzing::server_says(bytes));
