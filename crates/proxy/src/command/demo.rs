//! `baton demo`: a proxy before three endpoints, one of them slow and one unreliable, with a few
//! requests a second, so that everything can be looked at.

mod traffic;

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use baton_runtime::Runtime;

use super::run::{announce, serve_until_told};
use super::{EXIT_FAILURE, ORIGIN_DRAIN, failed, signals};
use crate::cli::DemoConfig;
use crate::config::{self, AdminAddress, Config};
use crate::log;
use crate::origin::{self, OriginOptions, Temper};
use crate::server::Server;
use traffic::Traffic;

/// The configuration, with names in place of the addresses.
const FILE: &str = include_str!("demo/demo.toml");

/// Answers of the slow endpoint come after this.
const SLOW: Duration = Duration::from_millis(40);

/// Requests that the unreliable endpoint answers before it fails as many.
const FITFUL: u64 = 150;

/// Runs the demonstration to its end.
pub(super) fn run(options: &DemoConfig) -> ExitCode {
    let _log = log::start(options.log_level);
    let Some(signals) = signals() else { return ExitCode::from(EXIT_FAILURE) };
    let tempers = [Temper::Even, Temper::Slow(SLOW), Temper::Fitful(FITFUL)];
    let mut origins = Vec::new();
    for temper in tempers {
        match start_origin(temper) {
            Ok(origin) => origins.push(origin),
            Err(error) => return failed(&error),
        }
    }
    let endpoints: Vec<SocketAddr> = origins.iter().map(|origin| origin.addresses()[0]).collect();
    let config = match configuration(options, &endpoints) {
        Ok(config) => config,
        Err(error) => return failed(&error),
    };
    let load = Box::new(|| Err("the demonstration has no file".to_owned()));
    let server = match Server::start(&config, load) {
        Ok(server) => server,
        Err(error) => return failed(&error),
    };
    announce(&server);
    let traffic = match Traffic::start(server.addresses()[0]) {
        Ok(traffic) => traffic,
        Err(error) => return failed(&error),
    };
    // Without a standard output the demonstration still runs.
    let _result = std::io::stdout().write_all(text(&server, endpoints[0]).as_bytes());
    let status = serve_until_told(&server, signals);
    drop(traffic);
    for origin in &origins {
        origin.drain();
    }
    for origin in &origins {
        origin.join(ORIGIN_DRAIN);
    }
    status
}

/// What the demonstration runs by.
fn configuration(options: &DemoConfig, endpoints: &[SocketAddr]) -> Result<Config, String> {
    let text = file(options.listen, "127.0.0.1:0", endpoints);
    let mut config = config::parse(&text, "demo").map_err(|error| error.to_string())?;
    config.log_level = options.log_level;
    Ok(config)
}

fn file(listen: SocketAddr, admin: &str, endpoints: &[SocketAddr]) -> String {
    FILE.replace("${LISTEN}", &listen.to_string())
        .replace("${ADMIN}", admin)
        .replace("${WELL}", &endpoints[0].to_string())
        .replace("${SLOW}", &endpoints[1].to_string())
        .replace("${FITFUL}", &endpoints[2].to_string())
}

fn start_origin(temper: Temper) -> Result<Runtime, baton_runtime::StartError> {
    origin::start(&OriginOptions {
        listen: vec![([127, 0, 0, 1], 0).into()],
        cores: Some(1),
        driver: baton_runtime::DriverChoice::Auto,
        temper,
    })
}

fn text(server: &Server, well: SocketAddr) -> String {
    let proxy = server.addresses()[0];
    let admin = match server.admin_address() {
        Some(AdminAddress::Tcp(address)) => address.to_string(),
        Some(AdminAddress::Unix(_)) | None => unreachable!("the demonstration has a TCP address"),
    };
    format!(
        "baton listens on http://{proxy} in front of three endpoints: one that is well\n\
         (http://{well}), one that is slow, and one that fails half of the time. It asks\n\
         itself some fifty times a second, so that there is something to see.\n\n\
         Look:\n  \
         http://{admin}/                      the live page, in a browser\n  \
         baton top --admin {admin}            the same in a terminal\n  \
         curl http://{admin}/metrics          for Prometheus\n  \
         curl http://{admin}/config           the configuration in force\n\n\
         Try:\n  \
         curl -i http://{proxy}/              the endpoint that is well\n  \
         curl -i http://{proxy}/three/echo    any of the three; a failure is tried elsewhere\n  \
         curl -i http://{proxy}/limited       four times in a row: the last one gets 429\n  \
         curl -i http://{proxy}/old/page      a redirect\n  \
         curl -i http://{proxy}/echo -d hello what an endpoint sees\n  \
         curl -i -H X-Baton:1 -X POST http://{admin}/upstreams/three/endpoints/{well}/drain\n\n\
         Ctrl-C ends it.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_of_the_demonstration_is_valid() {
        let addresses: Vec<SocketAddr> =
            [1, 2, 3].map(|port| ([127, 0, 0, 1], port).into()).to_vec();
        let text = file(([127, 0, 0, 1], 8080).into(), "127.0.0.1:9901", &addresses);
        let config = config::parse(&text, "demo").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.upstreams.len(), 2);
    }
}
