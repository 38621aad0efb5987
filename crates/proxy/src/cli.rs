//! The command line: arguments to a [`Command`].
//!
//! What a command takes is declared here with clap, except the flags of settings, which are made
//! from the table in `config` (see `flags`). Nothing here prints or exits: help and errors are
//! returned as text.

mod flags;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{self, Config, DriverChoice, LOG_LEVEL, LogLevel, UpstreamAddr};
use flags::{OriginSettings, Settings};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Proxy until stopped.
    Run(Config),
    /// The file at the path is valid and says this; report it and end.
    Check(Config, PathBuf),
    /// Serve the built-in origin until stopped.
    Origin(OriginConfig),
    /// Serve the built-in origin and a proxy before it until stopped.
    Demo(DemoConfig),
    /// Write the text to standard output and end with status 0.
    Info(String),
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

const USAGE: &str = "\
Usage: baton --listen <ADDR> --upstream <ADDR> [OPTIONS]
       baton run --config <FILE>
       baton check --config <FILE>
       baton origin --listen <ADDR>
       baton demo";

/// An HTTP edge proxy.
#[derive(Parser)]
#[command(
    name = "baton",
    bin_name = "baton",
    version,
    override_usage = USAGE.trim_start_matches("Usage: "),
    subcommand_negates_reqs = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Subcommands>,

    #[command(flatten)]
    proxy: ProxyArgs,

    /// The least severe event that is logged.
    #[arg(
        long,
        global = true,
        value_name = LOG_LEVEL.placeholder(),
        help = flags::help(&LOG_LEVEL),
        value_parser = flags::parse_log_level
    )]
    log: Option<LogLevel>,
}

#[derive(Args)]
struct ProxyArgs {
    /// Address to accept on, such as :8080 (every IPv4 interface) or 127.0.0.1:8080; repeatable.
    #[arg(long, value_name = "ADDR", required = true, value_parser = parse_listen)]
    listen: Vec<SocketAddr>,

    /// Endpoint to send to, such as 127.0.0.1:9000 or name:9000; repeat to balance.
    #[arg(long, value_name = "ADDR", required = true, value_parser = parse_upstream)]
    upstream: Vec<UpstreamAddr>,

    /// Write the configuration file that says the same, and end.
    #[arg(long)]
    print_config: bool,

    #[command(flatten)]
    settings: Settings,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Proxy as a configuration file says.
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Check a configuration file.
    Check {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,

        /// Write the complete configuration, defaults included.
        #[arg(long)]
        print_config: bool,
    },
    /// Serve the built-in origin, which answers every request itself.
    Origin {
        /// Address to accept on, such as :9000 (every IPv4 interface) or 127.0.0.1:9000.
        #[arg(long, value_name = "ADDR", value_parser = parse_listen)]
        listen: SocketAddr,

        #[command(flatten)]
        settings: OriginSettings,
    },
    /// Serve the built-in origin and a proxy before it, to try.
    Demo {
        /// Address of the proxy.
        #[arg(
            long,
            value_name = "ADDR",
            value_parser = parse_listen,
            default_value = "127.0.0.1:8080"
        )]
        listen: SocketAddr,
    },
}

impl Cli {
    fn into_command(self) -> Result<Command, UsageError> {
        let log = self.log;
        let log_level = log.unwrap_or_default();
        match self.command {
            None => self.proxy.into_command(log_level),
            Some(Subcommands::Run { config }) => Ok(Command::Run(load(&config, log)?)),
            Some(Subcommands::Check { config: path, print_config }) => {
                let config = load(&path, log)?;
                if print_config {
                    return Ok(Command::Info(config::print(&config)));
                }
                Ok(Command::Check(config, path))
            }
            Some(Subcommands::Origin { listen, settings }) => {
                let OriginSettings { cores, driver } = settings;
                Ok(Command::Origin(OriginConfig { listen, cores, driver, log_level }))
            }
            Some(Subcommands::Demo { listen }) => {
                Ok(Command::Demo(DemoConfig { listen, log_level }))
            }
        }
    }
}

impl ProxyArgs {
    fn into_command(self, log_level: LogLevel) -> Result<Command, UsageError> {
        let Settings(mut config) = self.settings;
        config.log_level = log_level;
        let refuse = |problem: String| refused(&problem);
        for address in self.listen {
            config.add_listener(address).map_err(refuse)?;
        }
        for address in self.upstream {
            config.add_upstream(address).map_err(refuse)?;
        }
        config.check_relations().map_err(|problem| {
            refused(&format!("{problem}; --limit-target-bytes is at most --limit-head-bytes"))
        })?;
        if self.print_config {
            return Ok(Command::Info(config::print(&config)));
        }
        Ok(Command::Run(config))
    }
}

/// The level of the command line, which names how this one run is watched, goes before the file's.
fn load(path: &Path, log: Option<LogLevel>) -> Result<Config, UsageError> {
    let mut config = config::load(path).map_err(|error| usage_error(error.to_string()))?;
    if let Some(log_level) = log {
        config.log_level = log_level;
    }
    Ok(config)
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    config::parse_listen(text)
        .map_err(|error| format!("{error}\n  expected :8080, 127.0.0.1:8080 or [::1]:8080"))
}

fn parse_upstream(text: &str) -> Result<UpstreamAddr, String> {
    config::parse_upstream(text)
        .map_err(|error| format!("{error}\n  expected 127.0.0.1:9000, [::1]:9000 or name:9000"))
}

#[cfg(test)]
mod tests;
