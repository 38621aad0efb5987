//! The groups of settings with their places in `Config`, whatever their types: for flags, for the
//! complete file, and for those who list all settings.

use super::settings::{
    ADMIN_TABLE, AdminSettings, FORWARD, LIMIT, LOG, LogSettings, POOL, RUNTIME, TIMEOUT,
};
use super::table::{Field, Setting, Table};
use super::value::{Given, ValueError};
use super::{AccessLogConfig, AdminAddress, Config};

/// A table of settings and what it is in `Config`.
struct Group<C: 'static> {
    /// Name of the table in the file.
    name: &'static str,
    /// What comes before a setting's name in its flag, with its hyphen; empty for none.
    flag_prefix: &'static str,
    /// The setting whose flag is the group's name alone; empty for none.
    bare: &'static str,
    /// Title over the flags in the help.
    heading: &'static str,
    table: &'static Table<dyn Setting<C>>,
    get: fn(&Config) -> C,
    put: fn(&mut Config, C),
    /// Finds values that do not go together: one's key, and what is wrong.
    check: fn(&C) -> Result<(), (&'static str, ValueError)>,
}

/// A group of settings.
pub(crate) trait Section: Sync {
    /// Title over the flags in the help.
    fn heading(&self) -> &'static str;

    /// One for each setting.
    fn flags(&self) -> Vec<Flag>;

    /// Stores the settings for which `text_of` the flag's name has a text.
    fn set<'t>(
        &self,
        config: &mut Config,
        text_of: &dyn Fn(&str) -> Option<&'t str>,
    ) -> Result<(), Box<FlagError>>;

    /// The values in `config`, as flags take them, in the order of `flags`.
    #[cfg(test)]
    fn shown(&self, config: &Config) -> Vec<String>;

    /// Writes the table, each setting with its meaning.
    fn print(&self, config: &Config, out: &mut String);
}

/// The flag of a setting.
pub(crate) struct Flag {
    /// Without its hyphens.
    pub(crate) name: String,
    pub(crate) placeholder: String,
    /// The first line of the meaning, and the default.
    pub(crate) help: String,
}

/// A flag's value was refused.
pub(crate) struct FlagError {
    pub(crate) flag: Flag,
    pub(crate) text: String,
    pub(crate) error: ValueError,
}

impl<C: Default> Group<C> {
    fn flag(&self, field: &Field<dyn Setting<C>>) -> Flag {
        let name = if field.name == self.bare {
            self.name.to_owned()
        } else {
            format!("{}{}", self.flag_prefix, field.name.replace('_', "-"))
        };
        let doc = field.doc.first().map_or("", |line| line.trim()).trim_end_matches('.');
        let help = format!("{doc} [default: {}]", field.access.show(&C::default()));
        Flag { name, placeholder: field.access.placeholder(), help }
    }
}

impl<C: Default> Section for Group<C> {
    fn heading(&self) -> &'static str {
        self.heading
    }

    fn flags(&self) -> Vec<Flag> {
        self.table.fields.iter().map(|field| self.flag(field)).collect()
    }

    fn set<'t>(
        &self,
        config: &mut Config,
        text_of: &dyn Fn(&str) -> Option<&'t str>,
    ) -> Result<(), Box<FlagError>> {
        let mut values = (self.get)(config);
        for field in self.table.fields {
            let flag = self.flag(field);
            let Some(text) = text_of(&flag.name) else { continue };
            if let Err(error) = field.access.parse(&mut values, Given::Flag(text)) {
                return Err(Box::new(FlagError { flag, text: text.to_owned(), error }));
            }
        }
        if let Err((name, error)) = (self.check)(&values) {
            let field = self.table.fields.iter().find(|field| field.name == name);
            let field = field.expect("a check names a key of its group");
            let text = field.access.show(&values);
            return Err(Box::new(FlagError { flag: self.flag(field), text, error }));
        }
        (self.put)(config, values);
        Ok(())
    }

    #[cfg(test)]
    fn shown(&self, config: &Config) -> Vec<String> {
        let values = (self.get)(config);
        self.table.fields.iter().map(|field| field.access.show(&values)).collect()
    }

    fn print(&self, config: &Config, out: &mut String) {
        let values = (self.get)(config);
        out.push_str(&format!("\n[{}]\n", self.name));
        for field in self.table.fields {
            for line in field.doc {
                out.push_str(&format!("#{line}\n"));
            }
            let text = field.access.write(&values).unwrap_or_default();
            out.push_str(&format!("{} = {text}\n", field.name));
        }
    }
}

/// The groups in the order of their documentation.
pub(crate) static SETTINGS: [&dyn Section; 7] = [
    &Group {
        name: "runtime",
        flag_prefix: "",
        bare: "",
        heading: "Runtime",
        table: &RUNTIME,
        get: |config| config.runtime.clone(),
        put: |config, values| config.runtime = values,
        check: |_| Ok(()),
    },
    &Group {
        name: "timeout",
        flag_prefix: "timeout-",
        bare: "",
        heading: "Timeouts",
        table: &TIMEOUT,
        get: |config| config.timeouts.clone(),
        put: |config, values| config.timeouts = values,
        check: |_| Ok(()),
    },
    &Group {
        name: "limit",
        flag_prefix: "limit-",
        bare: "",
        heading: "Limits",
        table: &LIMIT,
        get: |config| config.limits.clone(),
        put: |config, values| config.limits = values,
        check: |_| Ok(()),
    },
    &Group {
        name: "pool",
        flag_prefix: "pool-",
        bare: "",
        heading: "Upstream pool",
        table: &POOL,
        get: |config| config.pool.clone(),
        put: |config, values| config.pool = values,
        check: |_| Ok(()),
    },
    &Group {
        name: "forward",
        flag_prefix: "forward-",
        bare: "",
        heading: "Forwarding",
        table: &FORWARD,
        get: |config| config.forward,
        put: |config, values| config.forward = values,
        check: |_| Ok(()),
    },
    &Group {
        name: "log",
        flag_prefix: "log-",
        bare: "level",
        heading: "Log",
        table: &LOG,
        get: log_settings,
        put: put_log,
        check: |_| Ok(()),
    },
    &Group {
        name: "admin",
        flag_prefix: "admin-",
        bare: "listen",
        heading: "Administration",
        table: &ADMIN_TABLE,
        get: admin_settings,
        put: put_admin,
        check: check_admin,
    },
];

fn log_settings(config: &Config) -> LogSettings {
    let access = config.access_log.clone();
    let access_format = access.as_ref().map_or_else(Default::default, |access| access.format);
    LogSettings { level: config.log_level, access: access.map(|access| access.to), access_format }
}

pub(crate) fn put_log(config: &mut Config, settings: LogSettings) {
    let LogSettings { level, access, access_format } = settings;
    config.log_level = level;
    config.access_log = access.map(|to| AccessLogConfig { to, format: access_format });
}

/// What is not for this machine alone was said to be public.
fn admin_settings(config: &Config) -> AdminSettings {
    let public = match &config.admin {
        Some(AdminAddress::Tcp(address)) => !address.ip().is_loopback(),
        Some(AdminAddress::Unix(_)) | None => false,
    };
    AdminSettings { listen: config.admin.clone(), public }
}

pub(crate) fn put_admin(config: &mut Config, settings: AdminSettings) {
    config.admin = settings.listen;
}

fn check_admin(settings: &AdminSettings) -> Result<(), (&'static str, ValueError)> {
    settings.check().map_err(|problem| {
        let expected = "127.0.0.1:9901, a Unix socket, or --admin-public beside it".to_owned();
        ("listen", ValueError { problem, fix: String::new(), expected })
    })
}
