//! An HTTP/1 edge proxy in which every connection lives on one core.
//!
//! The way of one request, forward by calls and back by return:
//!
//! ```text
//! client ─► downstream ─► exchange ─► http1 ─► upstream (pool) ─► endpoint
//!                            │  request body: relay
//! client ◄─ downstream ◄─ answer ◄─ http1 ◄──────────────────────── endpoint
//!                            │  answer body: relay; 101: tunnel
//! ```
//!
//! [`server::Server`] starts it from a [`config::Config`]; [`cli`] turns arguments into one.

#![forbid(unsafe_code)]

mod access_log;
mod account;
mod admission;
mod answer;
pub mod cli;
mod clients;
pub mod command;
pub mod config;
mod control;
mod counters;
mod doctor;
mod downstream;
mod error;
mod exchange;
mod histogram;
mod limiter;
mod limits;
mod live;
mod log;
pub mod origin;
mod plan;
mod pool;
mod probes;
mod proxy;
mod relay;
mod reply;
pub mod route;
pub mod server;
mod top;
mod tunnel;
pub mod units;
mod upload;
mod upstream;

pub use counters::Counters;
