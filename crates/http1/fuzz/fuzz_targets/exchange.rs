#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| baton_http1::fuzzing::exchange(data));
