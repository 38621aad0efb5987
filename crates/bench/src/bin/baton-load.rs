//! `baton-load`: asks one URL for the same thing over and over and tells how long that takes.
//!
//! Exit status: 0 if every request succeeded, 1 if one failed or the load could not run, 2 for
//! bad usage.

use std::process::ExitCode;

use baton_bench::load::{self, Args};
use clap::Parser;

fn main() -> ExitCode {
    let plan = match Args::parse().plan() {
        Ok(plan) => plan,
        Err(error) => {
            eprintln!("baton-load: {error}");
            return ExitCode::from(2);
        }
    };
    // One descriptor for each connection. Where the limit stays too low, connecting fails and says so.
    if let Err(error) = baton_platform::raise_descriptor_limit() {
        eprintln!("baton-load: the descriptor limit stays as it is: {error}");
    }
    println!("{plan}");
    match load::run(&plan) {
        Ok(report) => {
            println!("{report}");
            ExitCode::from(u8::from(report.failed() > 0))
        }
        Err(error) => {
            eprintln!("baton-load: {error}");
            ExitCode::from(1)
        }
    }
}
