//! Sockets and doorbells as a reactor uses them, on loopback addresses and socket pairs.

mod connect;
mod doorbell;
mod listener;
mod stream;
mod support;
