//! What each command takes, declared with clap.

// What arguments are for is shown to users as it stands.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::bare_urls)]

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use super::flags::{self, OriginSettings, Settings};
use super::{
    Command, DemoConfig, FmtConfig, MatchConfig, MatchRequest, OriginConfig, RunConfig, UsageError,
    refused, request, usage_error,
};
use crate::config::{self, ADMIN, AdminAddress, Given, Loaded, LogLevel, Scalar, UpstreamAddr};

pub(super) const USAGE: &str = "\
Usage: baton --listen <ADDR> --upstream <ADDR> [OPTIONS]
       baton run --config <FILE>
       baton check --config <FILE>
       baton routes --config <FILE>
       baton match --config <FILE> <METHOD> <URL>
       baton fmt <FILE>...
       baton demo";

/// At the end of the help.
const EXAMPLES: &str = "\
Examples:
  baton --listen :8080 --upstream 127.0.0.1:9000
  baton --listen :8080 --upstream a:9000 --upstream b:9000 --print-config > baton.toml
  baton run --config baton.toml";

const RUN_EXAMPLES: &str = "\
Examples:
  baton run --config /etc/baton/baton.toml
  sops decrypt baton.toml | baton run --config -";

const CHECK_EXAMPLES: &str = "\
Examples:
  baton check --config baton.toml
  baton check --config baton.toml --print-config";

const MATCH_EXAMPLES: &str = "\
Examples:
  baton match --config baton.toml GET http://api.example.com/v1/users
  baton match --config baton.toml POST /v1/users -H 'host: api.example.com' -H 'x-canary: 1'
  baton match --config baton.toml GET http://example.com/ --from 10.1.2.3";

const FMT_EXAMPLES: &str = "\
Examples:
  baton fmt baton.toml conf.d/*.toml
  baton fmt --check baton.toml
  baton fmt - < baton.toml";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  baton schema > baton.schema.json
In the first line of the file, editors with Even Better TOML or Taplo then find it:
  #:schema ./baton.schema.json";

const ADMIN_EXAMPLES: &str = "\
Examples:
  baton reload --admin 127.0.0.1:9901
  baton reload --admin unix:/run/baton.sock";

/// An HTTP edge proxy.
#[derive(Parser)]
#[command(
    name = "baton",
    bin_name = "baton",
    version,
    override_usage = USAGE.trim_start_matches("Usage: "),
    subcommand_negates_reqs = true,
    after_help = EXAMPLES,
    max_term_width = 100
)]
pub(super) struct Cli {
    #[command(subcommand)]
    command: Option<Subcommands>,

    #[command(flatten)]
    proxy: ProxyArgs,

    /// The least severe event that is logged.
    #[arg(
        long,
        global = true,
        value_name = flags::log_flag().placeholder,
        help = flags::log_flag().help,
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
    #[command(after_help = RUN_EXAMPLES)]
    Run(FileArgs),
    /// Check a configuration file.
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        #[command(flatten)]
        file: FileArgs,

        /// Write the complete configuration, defaults included.
        #[arg(long)]
        print_config: bool,
    },
    /// Write the routes in the order in which they are tried.
    Routes(FileArgs),
    /// Say which route a request takes, and why.
    #[command(after_help = MATCH_EXAMPLES)]
    Match(MatchArgs),
    /// Write the JSON schema of the configuration file, for editors.
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
    /// Give configuration files one form. Comments and order stay.
    #[command(after_help = FMT_EXAMPLES)]
    Fmt {
        /// The files; - is standard input.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,

        /// Change nothing; end with status 1 if a file has another form.
        #[arg(long)]
        check: bool,
    },
    /// Tell a running proxy to read its file again.
    #[command(after_help = ADMIN_EXAMPLES)]
    Reload(AdminArgs),
    /// Show what a running proxy does.
    Top(AdminArgs),
    /// Say what of this machine holds a proxy back, and what to change.
    Doctor {
        /// Write the report as JSON.
        #[arg(long)]
        json: bool,
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

#[derive(Args)]
struct FileArgs {
    /// The configuration file; - is standard input.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

#[derive(Args)]
struct AdminArgs {
    /// Where the proxy takes orders, as its [admin] says.
    #[arg(long, value_name = "ADDR|unix:PATH", value_parser = parse_admin)]
    admin: AdminAddress,
}

#[derive(Args)]
struct MatchArgs {
    #[command(flatten)]
    file: FileArgs,

    /// The method, such as GET.
    method: String,

    /// The URL, such as http://example.com/path or /path.
    #[arg(value_parser = request::parse_url)]
    url: (Option<String>, String),

    /// A field of the request; repeatable.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = request::parse_field)]
    fields: Vec<(String, String)>,

    /// The client's address.
    #[arg(long, value_name = "IP")]
    from: Option<IpAddr>,

    /// The name of the listener it comes in at.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
}

impl MatchArgs {
    fn into_command(self, log: Option<LogLevel>) -> Result<Command, UsageError> {
        let config = load(&self.file.config, log)?.config;
        if let Some(name) = &self.listener
            && config.listeners.iter().all(|listener| listener.name != *name)
        {
            let names: Vec<&str> =
                config.listeners.iter().map(|listener| listener.name.as_str()).collect();
            return Err(refused(&format!(
                "there is no listener '{name}'\n  expected one of {}",
                names.join(", ")
            )));
        }
        let (host, target) = self.url;
        let field = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        // As a client sends it: the field goes before the address it connects to.
        let host = field.map(|(_, value)| request::host_of(value).to_owned()).or(host);
        Ok(Command::Match(MatchConfig {
            config,
            request: MatchRequest {
                method: self.method,
                host,
                target,
                fields: self.fields,
                from: self.from,
                listener: self.listener,
            },
        }))
    }
}

impl Cli {
    pub(super) fn into_command(self) -> Result<Command, UsageError> {
        let log = self.log;
        let log_level = log.unwrap_or_default();
        match self.command {
            None => self.proxy.into_command(log_level),
            Some(Subcommands::Run(FileArgs { config: path })) => {
                let Loaded { config, files } = load(&path, log)?;
                let path = (path != Path::new("-")).then_some(path);
                Ok(Command::Run(RunConfig { config, path, files, log }))
            }
            Some(Subcommands::Check { file: FileArgs { config: path }, print_config }) => {
                let config = load(&path, log)?.config;
                if print_config {
                    return Ok(Command::Info(config::print(&config)));
                }
                let is_input = path == Path::new("-");
                let path = if is_input { config::STANDARD_INPUT.into() } else { path };
                Ok(Command::Check(config, path))
            }
            Some(Subcommands::Routes(FileArgs { config: path })) => {
                Ok(Command::Routes(load(&path, log)?.config))
            }
            Some(Subcommands::Match(args)) => args.into_command(log),
            Some(Subcommands::Schema) => Ok(Command::Info(format!("{:#}\n", config::schema()))),
            Some(Subcommands::Fmt { files, check }) => Ok(Command::Fmt(FmtConfig { files, check })),
            Some(Subcommands::Reload(AdminArgs { admin })) => Ok(Command::Reload(admin)),
            Some(Subcommands::Top(AdminArgs { admin })) => Ok(Command::Top(admin)),
            Some(Subcommands::Doctor { json }) => Ok(Command::Doctor(if json {
                super::ReportForm::Json
            } else {
                super::ReportForm::Text
            })),
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
        Ok(Command::Run(RunConfig { config, path: None, files: Vec::new(), log: Some(log_level) }))
    }
}

/// Reads the file, or standard input for `-`. The level of the command line, which names how this
/// one run is watched, goes before the file's.
fn load(path: &Path, log: Option<LogLevel>) -> Result<Loaded, UsageError> {
    let loaded = if path == Path::new("-") {
        config::load_input(std::io::stdin().lock())
    } else {
        config::load(path)
    };
    let mut loaded = loaded.map_err(|error| usage_error(error.to_string()))?;
    loaded.config.log_level = log.unwrap_or(loaded.config.log_level);
    Ok(loaded)
}

fn parse_admin(text: &str) -> Result<AdminAddress, String> {
    let expected = "expected 127.0.0.1:9901 or unix:/run/baton.sock";
    let parsed = ADMIN.parse(Given::Flag(text));
    let address = parsed.map_err(|refusal| format!("{}\n  {expected}", refusal.problem))?;
    address.ok_or_else(|| format!("it is no address\n  {expected}"))
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    config::parse_listen(text)
        .map_err(|error| format!("{error}\n  expected :8080, 127.0.0.1:8080 or [::1]:8080"))
}

fn parse_upstream(text: &str) -> Result<UpstreamAddr, String> {
    config::parse_upstream(text)
        .map_err(|error| format!("{error}\n  expected 127.0.0.1:9000, [::1]:9000 or name:9000"))
}
