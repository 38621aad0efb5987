//! `baton run`: a proxy until it is told to stop.

use std::process::ExitCode;

use signal_hook::consts::{SIGHUP, SIGUSR1};
use signal_hook::iterator::Signals;

use super::{EXIT_FAILURE, failed, leave_at_next_signal, signals, wait_for_stop};
use crate::cli::RunConfig;
use crate::config::Config;
use crate::log;
use crate::server::{Load, Server};

/// Runs the proxy to its end.
pub(super) fn run(options: RunConfig) -> ExitCode {
    let _log = log::start(options.config.log_level);
    let Some(signals) = signals() else { return ExitCode::from(EXIT_FAILURE) };
    let config = options.config.clone();
    let server = match Server::start(&config, load_again(options)) {
        Ok(server) => server,
        Err(error) => return failed(&error),
    };
    announce(&server);
    serve_until_told(&server, signals)
}

/// What a reload reads.
fn load_again(options: RunConfig) -> Load {
    Box::new(move || match options.load_again() {
        Some(Ok(loaded)) => Ok(loaded.config),
        Some(Err(error)) => Err(format!("{error}\n\nnothing has changed")),
        None => Err("there is no file to read again: the configuration came from flags or \
                     standard input"
            .to_owned()),
    })
}

/// Says where it serves.
pub(super) fn announce(server: &Server) {
    let runtime = server.runtime();
    tracing::info!(
        listen = ?server.addresses(),
        cores = runtime.cores(),
        driver = %runtime.driver(),
        "baton {} serves",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(admin) = server.admin_address() {
        tracing::info!(%admin, "operators are answered");
    }
}

/// SIGTERM or SIGINT: no new connection, what is under way ends within the bound; once more: leave
/// at once. SIGHUP: the configuration is read again. SIGUSR1: the access log is opened anew, and the
/// counters go to the log.
pub(super) fn serve_until_told(server: &Server, mut signals: Signals) -> ExitCode {
    wait_for_stop(&mut signals, |signal| match signal {
        // Its outcome is in the log.
        SIGHUP => drop(server.reload_again()),
        SIGUSR1 => {
            server.reopen_access_log();
            server.log_counters();
        }
        _ => {}
    });
    let bound = server.config(|config: &Config| config.timeouts.drain);
    tracing::info!(?bound, "stopping: exchanges under way may end");
    leave_at_next_signal(signals);
    if server.stop(bound) {
        tracing::info!("stopped");
    } else {
        tracing::warn!("stopped at the bound: what was still under way was cut off");
    }
    ExitCode::SUCCESS
}
