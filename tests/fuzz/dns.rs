#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| petstore_hosting::fuzzing::dns(bytes));
