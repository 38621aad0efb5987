//! What a request holds of an endpoint while it has, or makes, a connection to it.

use std::rc::Rc;

use super::endpoint::{Endpoint, Reusable};
use crate::pool::Parked;

/// The right to have one connection open. Goes to who waits for it when dropped.
pub(crate) struct Permit<C: Reusable>(Option<Rc<Endpoint<C>>>);

impl<C: Reusable> Permit<C> {
    pub(super) fn of(endpoint: &Rc<Endpoint<C>>) -> Permit<C> {
        Permit(Some(endpoint.clone()))
    }

    /// The connection it is for is kept by its endpoint.
    pub(super) fn lay_down(mut self) {
        self.0 = None;
    }
}

impl<C: Reusable> Drop for Permit<C> {
    fn drop(&mut self) {
        if let Some(endpoint) = self.0.take() {
            endpoint.release();
        }
    }
}

/// Leave to use a connection: one that is there, or one to be made. In this order: the connection
/// ends before its permit goes on.
pub(crate) struct Grant<C: Reusable> {
    pub(super) parked: Option<Parked<C>>,
    pub(super) permit: Permit<C>,
}
