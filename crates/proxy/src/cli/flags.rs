//! Flags made from the table of settings: one per setting, with the table's name, meaning, default
//! and bounds.

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, FromArgMatches};

use crate::config::{
    Config, DriverChoice, Field, Given, Group, LOG_LEVEL, LogLevel, RUNTIME, SETTINGS,
};

/// Every setting that has a flag of its own, from the flags or by default. No address is set.
pub(super) struct Settings(pub(super) Config);

/// The settings that the built-in origin shares with the proxy.
pub(super) struct OriginSettings {
    pub(super) cores: Option<usize>,
    pub(super) driver: DriverChoice,
}

type Flags = Vec<(&'static Group, &'static Field)>;

/// `--log` is not among them: every command has it, and it goes before the file.
fn all() -> Flags {
    let groups = SETTINGS.into_iter().filter(|group| group.table != "log");
    groups.flat_map(|group| group.fields.iter().map(move |field| (group, field))).collect()
}

fn of_origin() -> Flags {
    let shared = RUNTIME.fields.iter().filter(|field| ["cores", "driver"].contains(&field.name));
    shared.map(|field| (&RUNTIME, field)).collect()
}

impl Args for Settings {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(all().into_iter().map(arg))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut config = Config::defaults();
        set(&mut config, matches, all())?;
        Ok(Self(config))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        set(&mut self.0, matches, all())
    }
}

impl Args for OriginSettings {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(of_origin().into_iter().map(arg))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OriginSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut config = Config::defaults();
        set(&mut config, matches, of_origin())?;
        Ok(Self { cores: config.runtime.cores, driver: config.runtime.driver })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag's name without its hyphens: the group's prefix and the key in kebab case.
fn name((group, field): (&Group, &Field)) -> String {
    format!("{}{}", group.flag_prefix, field.name.replace('_', "-"))
}

fn arg(flag: (&'static Group, &'static Field)) -> Arg {
    let (group, field) = flag;
    Arg::new(name(flag))
        .long(name(flag))
        .value_name(field.placeholder())
        .help(help(field))
        .help_heading(group.heading)
}

/// The first line of the setting's documentation, which is enough for a list, and its default.
pub(super) fn help(field: &Field) -> String {
    let summary = field.doc.first().map_or("", |line| line.trim()).trim_end_matches('.');
    format!("{summary} [default: {}]", field.show(&Config::defaults()))
}

/// Parsed here and not by clap, so that a value has the same bounds and messages as in the file.
fn set(config: &mut Config, matches: &ArgMatches, flags: Flags) -> Result<(), clap::Error> {
    for flag in flags {
        let (_, field) = flag;
        let name = name(flag);
        let Some(text) = matches.get_one::<String>(&name) else { continue };
        field.set(config, Given::Flag(text)).map_err(|error| {
            let placeholder = field.placeholder();
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
    LOG_LEVEL.set(&mut config, Given::Flag(text)).map_err(|error| error.to_string())?;
    Ok(config.log_level)
}
