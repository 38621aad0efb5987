//! Several cores and a virtual clock, without sockets.

mod ejection;
mod queue;
mod settings;
mod simulation;
mod stress;

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fastrand::Rng;

use super::endpoint::{Entry, Reusable};
use super::permit::Grant;
use super::view::{Pick, View};
use super::{Tried, UpstreamState};
use crate::config::{self, PoolConfig, UpstreamAddr};

/// Stands for a connection, and is counted as long as it is open.
struct Token {
    open: Arc<AtomicU32>,
    stirred: Cell<bool>,
}

impl Token {
    /// Opens a connection. At no moment more than `most` are open.
    fn open(open: &Arc<AtomicU32>, most: u32) -> Token {
        let before = open.fetch_add(1, Ordering::SeqCst);
        assert!(before < most, "{} connections are open, {most} are allowed", before + 1);
        Token { open: open.clone(), stirred: Cell::new(false) }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Reusable for Token {
    fn has_stirred(&self) -> bool {
        self.stirred.get()
    }
}

fn address(index: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 8000 + u16::try_from(index).expect("few endpoints")))
}

/// An upstream of `endpoints` endpoints of weight 1 for `cores` cores, changed by `edit`.
fn upstream(
    endpoints: usize,
    cores: usize,
    edit: impl FnOnce(&mut config::Upstream),
) -> Arc<UpstreamState> {
    let endpoints = (0..endpoints).map(|index| config::Endpoint {
        address: UpstreamAddr::Ip(address(index)),
        weight: 1,
        backup: false,
    });
    let mut config = config::Upstream::new("u".into(), endpoints.collect(), PoolConfig::default());
    edit(&mut config);
    Arc::new(UpstreamState::new(config, cores, None))
}

/// `core`'s view of it at time 1.
fn view(state: &Arc<UpstreamState>, core: usize) -> View<Token> {
    View::new(state.clone(), core, Rng::with_seed(core as u64), 1)
}

/// The place in the configuration of the endpoint picked.
fn index(pick: &Pick<Token>) -> usize {
    pick.endpoint.state.entry
}

/// Picks `count` times at `now` and counts each endpoint.
fn spread(view: &View<Token>, now: u64, count: usize, endpoints: usize) -> Vec<usize> {
    let mut counts = vec![0; endpoints];
    for _ in 0..count {
        let pick = view.pick(now, None, &Tried::default()).expect("there are endpoints");
        counts[index(&pick)] += 1;
    }
    counts
}

fn tried(indices: &[usize]) -> Tried {
    let mut tried = Tried::default();
    indices.iter().for_each(|one| tried.add(address(*one)));
    tried
}

/// A permit that must be there at once.
fn open(entry: Entry<Token>) -> Grant<Token> {
    match entry {
        Entry::Open(grant) => grant,
        Entry::Wait(_) => panic!("it must wait"),
    }
}
