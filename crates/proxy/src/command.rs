//! What the binary does: runs one command to its end and says how it went.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use baton_runtime::Runtime;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::cli::{self, Command, DemoConfig, OriginConfig};
use crate::config::{self, Config, UpstreamAddr};
use crate::log;
use crate::origin::{self, OriginOptions};
use crate::server::{self, Server};

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
        Ok(Command::Run(config)) => run(&config),
        Ok(Command::Origin(options)) => run_origin(&options),
        Ok(Command::Demo(options)) => run_demo(&options),
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

fn run(config: &Config) -> ExitCode {
    let _log = log::start(config.log_level);
    let Some(signals) = signals() else { return ExitCode::from(EXIT_FAILURE) };
    let server = match Server::start(config, no_file()) {
        Ok(server) => server,
        Err(error) => return failed(&error),
    };
    announce(&server);
    serve_until_told(server, signals, config.timeouts.drain)
}

fn run_origin(options: &OriginConfig) -> ExitCode {
    let _log = log::start(options.log_level);
    let Some(mut signals) = signals() else { return ExitCode::from(EXIT_FAILURE) };
    let runtime = match start_origin(options) {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    tracing::info!(listen = ?runtime.addresses(), driver = %runtime.driver(), "the origin serves");
    wait_for_stop(&mut signals, || {});
    leave_at_next_signal(signals);
    runtime.drain();
    runtime.join(ORIGIN_DRAIN);
    ExitCode::SUCCESS
}

fn run_demo(options: &DemoConfig) -> ExitCode {
    let _log = log::start(options.log_level);
    let Some(signals) = signals() else { return ExitCode::from(EXIT_FAILURE) };
    let behind = OriginConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        cores: Some(1),
        driver: config::DriverChoice::Auto,
        log_level: options.log_level,
    };
    let origin = match start_origin(&behind) {
        Ok(origin) => origin,
        Err(error) => return failed(&error),
    };
    let config = Config::demo(options.listen, UpstreamAddr::Ip(origin.addresses()[0]));
    let server = match Server::start(&config, no_file()) {
        Ok(server) => server,
        Err(error) => return failed(&error),
    };
    announce(&server);
    let text = demo_text(&server, &origin);
    // Without a standard output the demonstration still runs.
    let _result = std::io::stdout().write_all(text.as_bytes());
    let status = serve_until_told(server, signals, ORIGIN_DRAIN);
    origin.drain();
    origin.join(ORIGIN_DRAIN);
    status
}

fn demo_text(server: &Server, origin: &Runtime) -> String {
    let proxy = server.addresses()[0];
    format!(
        "baton listens on http://{proxy} in front of an origin on http://{}\n\n\
         Try:\n  \
         curl -i http://{proxy}/\n  \
         curl -i http://{proxy}/echo -d 'hello'\n  \
         curl -i http://{proxy}/status/503\n  \
         curl -N http://{proxy}/chunked/100000 -o /dev/null -w '%{{size_download}} bytes\\n'\n  \
         curl -i http://{proxy}/delay/500\n\n\
         Ctrl-C ends it.\n",
        origin.addresses()[0]
    )
}

fn start_origin(options: &OriginConfig) -> Result<Runtime, baton_runtime::StartError> {
    origin::start(&OriginOptions {
        listen: vec![options.listen],
        cores: options.cores,
        driver: server::driver_choice(options.driver),
        temper: origin::Temper::Even,
    })
}

fn announce(server: &Server) {
    let runtime = server.runtime();
    tracing::info!(
        listen = ?server.addresses(),
        cores = runtime.cores(),
        driver = %runtime.driver(),
        "baton {} serves",
        env!("CARGO_PKG_VERSION")
    );
}

/// The signals are taken before the cores start, so that none is lost and none ends the process.
fn signals() -> Option<Signals> {
    match Signals::new([SIGTERM, SIGINT, SIGUSR1]) {
        Ok(signals) => Some(signals),
        Err(error) => {
            failed(&error);
            None
        }
    }
}

/// SIGTERM or SIGINT: no new connection, what is under way ends within `drain`; once more: leave
/// at once. SIGUSR1: the counters to the log.
fn serve_until_told(server: Server, mut signals: Signals, drain: Duration) -> ExitCode {
    wait_for_stop(&mut signals, || server.log_counters());
    tracing::info!(bound = ?drain, "stopping: exchanges under way may end");
    leave_at_next_signal(signals);
    if server.stop(drain) {
        tracing::info!("stopped");
    } else {
        tracing::warn!("stopped at the bound: what was still under way was cut off");
    }
    ExitCode::SUCCESS
}

fn wait_for_stop(signals: &mut Signals, report: impl Fn()) {
    for signal in signals.forever() {
        match signal {
            SIGUSR1 => report(),
            _ => return,
        }
    }
}

/// From here on a signal to stop ends the process.
fn leave_at_next_signal(mut signals: Signals) {
    let wait = move || {
        wait_for_stop(&mut signals, || {});
        std::process::exit(i32::from(EXIT_FAILURE));
    };
    if let Err(error) = std::thread::Builder::new().name("signals".into()).spawn(wait) {
        tracing::warn!(%error, "a second signal will not be heard");
    }
}

/// A server that was given its configuration by flags has no file to read anew.
fn no_file() -> server::Load {
    Box::new(|| Err("the configuration came from flags, so there is no file to read".to_owned()))
}

fn failed(error: &dyn Display) -> ExitCode {
    // On standard error and not in the log: it must be seen at every log level.
    let _result = writeln!(std::io::stderr(), "baton: {error}");
    ExitCode::from(EXIT_FAILURE)
}
