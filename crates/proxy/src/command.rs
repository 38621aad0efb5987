//! What the binary does: runs one command to its end and says how it went.

mod demo;
mod run;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::cli::{self, Command, FmtConfig, MatchConfig, OriginConfig, ReportForm};
use crate::config::{self, AdminAddress};
use crate::control::client;
use crate::origin::{self, OriginOptions, Temper};
use crate::route::{Question, RouteTable};
use crate::{doctor, log, server, top};

/// Exit status of a command that could not do its work.
const EXIT_FAILURE: u8 = 1;

/// Bound of the end of an origin: it has nothing that is worth waiting for longer.
const ORIGIN_DRAIN: Duration = Duration::from_secs(5);

/// Parses the arguments, runs the command, and returns its exit status: 0 clean, 1 failed while it
/// ran, 2 wrong arguments or configuration.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    match cli::parse(args) {
        Ok(Command::Info(text)) => print(&text),
        Ok(Command::Check(config, path)) => {
            print(&format!("{}\n", config::summary(&config, &path)))
        }
        Ok(Command::Run(options)) => run::run(options),
        Ok(Command::Routes(config)) => print(&RouteTable::new(&config).text(&config)),
        Ok(Command::Match(options)) => print(&explain(&options)),
        Ok(Command::Fmt(options)) => format_files(&options),
        Ok(Command::Reload(admin)) => reload(&admin),
        Ok(Command::Top(admin)) => match top::run(admin) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        },
        Ok(Command::Doctor(form)) => examine(form),
        Ok(Command::Origin(options)) => run_origin(&options),
        Ok(Command::Demo(options)) => demo::run(&options),
        Err(error) => {
            // With standard error closed there is nobody left to tell.
            let _result = std::io::stderr().write_all(error.text.as_bytes());
            ExitCode::from(error.exit)
        }
    }
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(EXIT_FAILURE),
    }
}

fn format_files(options: &FmtConfig) -> ExitCode {
    let done = cli::format_files(options, std::io::stdin().lock());
    // With standard error closed there is nobody left to tell.
    let _result = std::io::stderr().write_all(done.errors.as_bytes());
    let printed = print(&done.output);
    if done.exit == 0 { printed } else { ExitCode::from(done.exit) }
}

/// Which route takes the request, and why.
fn explain(options: &MatchConfig) -> String {
    let MatchConfig { config, request } = options;
    let fields: Vec<(&str, &str)> =
        request.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let named = |name: &String| config.listeners.iter().position(|known| known.name == *name);
    let (path, query) = match request.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (request.target.as_str(), None),
    };
    let question = Question {
        listener: request.listener.as_ref().and_then(named).unwrap_or(0),
        method: &request.method,
        scheme: "http",
        host: request.host.as_deref(),
        path,
        query,
        fields: &fields,
        peer: request.from.unwrap_or(Ipv4Addr::LOCALHOST.into()),
    };
    RouteTable::new(config).explain(config, &question)
}

fn reload(admin: &AdminAddress) -> ExitCode {
    match client::post(admin, "/reload") {
        Ok(reply) if reply.is_success() => print(&reply.text()),
        Ok(reply) => failed(&reply.text().trim_end()),
        Err(error) => failed(&format_args!("no proxy answers at {admin}: {error}")),
    }
}

fn examine(form: ReportForm) -> ExitCode {
    let report = doctor::report();
    print(&match form {
        ReportForm::Text => report.to_string(),
        ReportForm::Json => format!("{:#}\n", report.to_json()),
    });
    ExitCode::from(report.exit_status())
}

fn run_origin(options: &OriginConfig) -> ExitCode {
    let _log = log::start(options.log_level);
    let Some(mut signals) = signals() else { return ExitCode::from(EXIT_FAILURE) };
    let started = origin::start(&OriginOptions {
        listen: vec![options.listen],
        cores: options.cores,
        driver: server::driver_choice(options.driver),
        temper: Temper::Even,
    });
    let runtime = match started {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    tracing::info!(listen = ?runtime.addresses(), driver = %runtime.driver(), "the origin serves");
    wait_for_stop(&mut signals, |_| {});
    leave_at_next_signal(signals);
    runtime.drain();
    runtime.join(ORIGIN_DRAIN);
    ExitCode::SUCCESS
}

/// The signals are taken before the cores start, so that none is lost and none ends the process.
fn signals() -> Option<Signals> {
    match Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1]) {
        Ok(signals) => Some(signals),
        Err(error) => {
            failed(&error);
            None
        }
    }
}

/// Waits for SIGTERM or SIGINT; `other` is told of the rest.
fn wait_for_stop(signals: &mut Signals, other: impl Fn(i32)) {
    for signal in signals.forever() {
        match signal {
            SIGTERM | SIGINT => return,
            _ => other(signal),
        }
    }
}

/// From here on a signal to stop ends the process.
fn leave_at_next_signal(mut signals: Signals) {
    let wait = move || {
        wait_for_stop(&mut signals, |_| {});
        std::process::exit(i32::from(EXIT_FAILURE));
    };
    if let Err(error) = std::thread::Builder::new().name("signals".into()).spawn(wait) {
        tracing::warn!(%error, "a second signal will not be heard");
    }
}

fn failed(error: &dyn Display) -> ExitCode {
    // On standard error and not in the log: it must be seen at every log level.
    let _result = writeln!(std::io::stderr(), "baton: {error}");
    ExitCode::from(EXIT_FAILURE)
}
