//! Cores, sockets and tasks as a service meets them: over real sockets and on every driver.

#[path = "../support/mod.rs"]
mod support;

mod on_core;

mod blocking;
mod connecting;
mod dealing;
mod limits;
mod listeners;
mod notices;
mod reading;
mod serving;
mod starting;
mod stopping;
mod tasks;
mod turns;
mod writing;
