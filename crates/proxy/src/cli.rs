//! The command line: arguments to a [`Command`].
//!
//! What a command takes is declared here with clap, except the flags of settings, which are made
//! from the table in `config` (see `flags`). Nothing here prints or exits: help and errors are
//! returned as text.

mod args;
mod flags;
mod request;
mod rewrite;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches};

use crate::config::{self, AdminAddress, Config, DriverChoice, Loaded, LogLevel};
use args::{Cli, USAGE};
pub use request::{MatchConfig, MatchRequest};
pub(crate) use rewrite::format_files;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Proxy until stopped.
    Run(RunConfig),
    /// The file at the path is valid and says this; report it and end.
    Check(Config, PathBuf),
    /// Write the routes in the order in which they are tried, and end.
    Routes(Config),
    /// Say which route a request takes and why, and end.
    Match(MatchConfig),
    /// Give files one form, and end.
    Fmt(FmtConfig),
    /// Tell the proxy that answers at the address to read its file again.
    Reload(AdminAddress),
    /// Show what the proxy that answers at the address does, until told to end.
    Top(AdminAddress),
    /// Say what of this machine holds a proxy back, and end.
    Doctor(ReportForm),
    /// Serve the built-in origin until stopped.
    Origin(OriginConfig),
    /// Serve the built-in origin and a proxy before it until stopped.
    Demo(DemoConfig),
    /// Write the text to standard output and end with status 0.
    Info(String),
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// A proxy, and where its configuration is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunConfig {
    /// What it starts with.
    pub config: Config,
    /// The file, which a reload reads again; `None`: flags or standard input.
    pub path: Option<PathBuf>,
    /// Every file that was read.
    pub files: Vec<PathBuf>,
    /// The level of the command line, which goes before the file's, after a reload too.
    pub log: Option<LogLevel>,
}

impl RunConfig {
    /// Reads the file again. `None`: there is none.
    pub fn load_again(&self) -> Option<Result<Loaded, config::ConfigError>> {
        let loaded = config::load(self.path.as_deref()?);
        Some(loaded.map(|mut loaded| {
            loaded.config.log_level = self.log.unwrap_or(loaded.config.log_level);
            loaded
        }))
    }
}

/// Files that get one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FmtConfig {
    /// The files; `-` is standard input, whose form goes to standard output.
    pub files: Vec<PathBuf>,
    /// Say which have another form, and change none.
    pub check: bool,
}

/// The built-in origin: a server that answers every request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginConfig {
    /// Address to accept on. Port 0 asks the system for a free port.
    pub listen: SocketAddr,
    /// Cores to serve on; `None`: every CPU this process may use.
    pub cores: Option<usize>,
    /// How a core waits for I/O.
    pub driver: DriverChoice,
    /// The least severe event that is logged.
    pub log_level: LogLevel,
}

/// The demonstration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DemoConfig {
    /// Address of the proxy. Port 0 asks the system for a free port.
    pub listen: SocketAddr,
    /// The least severe event that is logged.
    pub log_level: LogLevel,
}

/// The arguments or the file they name are wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// For standard error; ends with a newline.
    pub text: String,
    /// Exit status, always [`EXIT_USAGE`].
    pub exit: u8,
}

/// Exit status where the arguments or the configuration are wrong. 1 is a failure at run time.
pub const EXIT_USAGE: u8 = 2;

/// Parses the arguments, the first of which is the program's name, and reads the file that `run`
/// or `check` names.
///
/// Errors: `UsageError` for what is unknown, missing or out of bounds, and for no argument at all.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, UsageError> {
    let args: Vec<OsString> = args.collect();
    if args.len() <= 1 {
        return Err(usage_error(format!("{USAGE}\n\nFor more information, try 'baton --help'.")));
    }
    let matches = match Cli::command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let text = error.render().to_string();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(Command::Info(text)),
                _ => Err(usage_error(text)),
            };
        }
    };
    refuse_flags_before_subcommand(&matches)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| refused(&error.to_string()))?;
    cli.into_command()
}

/// The flags of the proxy stand beside the subcommands, where clap alone would accept and ignore
/// them. (Its own setting against that would refuse `--log` as well.)
fn refuse_flags_before_subcommand(matches: &ArgMatches) -> Result<(), UsageError> {
    let Some(subcommand) = matches.subcommand_name() else { return Ok(()) };
    let command = Cli::command();
    let given = command.get_arguments().find(|arg| {
        let source = matches.value_source(arg.get_id().as_str());
        source == Some(ValueSource::CommandLine) && !arg.is_global_set()
    });
    match given.and_then(Arg::get_long) {
        Some(flag) => Err(refused(&format!("--{flag} cannot be used with '{subcommand}'"))),
        None => Ok(()),
    }
}

/// An error that clap did not find, in the form of those it did. `problem` may be the text of a
/// `clap::Error` without usage, which already starts with `error: `.
fn refused(problem: &str) -> UsageError {
    let problem = problem.trim_end().trim_start_matches("error: ");
    usage_error(format!("error: {problem}\n\nFor more information, try '--help'."))
}

fn usage_error(text: String) -> UsageError {
    UsageError { text: format!("{}\n", text.trim_end()), exit: EXIT_USAGE }
}

#[cfg(test)]
mod tests;
