#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| petstore::fuzzing::gate_budget(bytes));
