//! The binary: arguments in, exit status out.

use std::process::ExitCode;

fn main() -> ExitCode {
    baton_proxy::command::main(std::env::args_os())
}
