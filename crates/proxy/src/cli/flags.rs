//! Flags made from the tables of settings: one per setting, with the table's name, meaning, default
//! and bounds.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, FromArgMatches};

use crate::config::{Config, DriverChoice, Flag, FlagError, LogLevel, SETTINGS};

/// Every setting that has a flag of its own, from the flags or by default. No address is set.
pub(super) struct Settings(pub(super) Config);

/// The settings that the built-in origin shares with the proxy.
pub(super) struct OriginSettings {
    pub(super) cores: Option<usize>,
    pub(super) driver: DriverChoice,
}

/// Whether a flag is one of the proxy. `--log` is not among them: every command has it, and it goes
/// before the file.
fn of_proxy(flag: &str) -> bool {
    flag != "log"
}

fn of_origin(flag: &str) -> bool {
    ["cores", "driver"].contains(&flag)
}

fn args(command: clap::Command, is_wanted: fn(&str) -> bool) -> clap::Command {
    let args = SETTINGS.iter().flat_map(|section| {
        let flags = section.flags().into_iter().filter(move |flag| is_wanted(&flag.name));
        flags.map(|flag| arg(flag).help_heading(section.heading()))
    });
    command.args(args)
}

impl Args for Settings {
    fn augment_args(command: clap::Command) -> clap::Command {
        args(command, of_proxy)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut config = Config::defaults();
        set(&mut config, matches, of_proxy)?;
        Ok(Self(config))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        set(&mut self.0, matches, of_proxy)
    }
}

impl Args for OriginSettings {
    fn augment_args(command: clap::Command) -> clap::Command {
        args(command, of_origin)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OriginSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut config = Config::defaults();
        set(&mut config, matches, of_origin)?;
        Ok(Self { cores: config.runtime.cores, driver: config.runtime.driver })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn arg(flag: Flag) -> Arg {
    let is_switch = flag.placeholder == "true|false";
    let arg =
        Arg::new(flag.name.clone()).long(flag.name).value_name(flag.placeholder).help(flag.help);
    if is_switch {
        // `--forward-forwarded` alone is true.
        arg.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg
    }
}

/// The flag that every command has.
pub(super) fn log_flag() -> Flag {
    let flags = SETTINGS.iter().flat_map(|section| section.flags());
    flags.into_iter().find(|flag| !of_proxy(&flag.name)).expect("the log has a level")
}

/// Parsed here and not by clap, so that a value has the same bounds and messages as in the file.
fn set(
    config: &mut Config,
    matches: &ArgMatches,
    is_wanted: fn(&str) -> bool,
) -> Result<(), clap::Error> {
    let text_of = |name: &str| {
        let wanted = is_wanted(name).then(|| matches.get_one::<String>(name));
        wanted.flatten().map(String::as_str)
    };
    for section in SETTINGS {
        section.set(config, &text_of).map_err(|refused| {
            let FlagError { flag, text, error } = *refused;
            let Flag { name, placeholder, .. } = flag;
            let message =
                format!("invalid value '{text}' for '--{name} <{placeholder}>': {error}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message)
        })?;
    }
    Ok(())
}

/// Parses the value of `--log`.
pub(super) fn parse_log_level(text: &str) -> Result<LogLevel, String> {
    let mut config = Config::defaults();
    let text_of = |name: &str| (!of_proxy(name)).then_some(text);
    for section in SETTINGS {
        section.set(&mut config, &text_of).map_err(|refused| refused.error.to_string())?;
    }
    Ok(config.log_level)
}
