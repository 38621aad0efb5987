//! How other threads tell a core's service something.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::mailbox::Message;
use crate::shared::Shared;

/// A way into the mailbox of every core, from any thread. `N` is the notice type of the service
/// that the runtime was started with; a core logs and drops anything else.
pub struct Postbox<N> {
    shared: Arc<Shared>,
    notice: PhantomData<fn(N)>,
}

impl<N: Send + 'static> Postbox<N> {
    pub(crate) fn new(shared: Arc<Shared>) -> Postbox<N> {
        Postbox { shared, notice: PhantomData }
    }

    /// Cores that can be told something: `0..cores`.
    pub fn cores(&self) -> usize {
        self.shared.cores()
    }

    /// Tells core `core` something and wakes it. Never waits.
    ///
    /// # Errors
    /// The notice itself, if the core's mailbox is full or the core has ended.
    pub fn post(&self, core: usize, notice: N) -> Result<(), N> {
        assert!(core < self.shared.cores(), "an acceptor has no service");
        match self.shared.mailbox(core).send(Message::Notice(Box::new(notice))) {
            Ok(()) => Ok(()),
            Err(Message::Notice(back)) => {
                Err(*back.downcast().expect("the mailbox gives back what it was given"))
            }
            Err(_) => unreachable!("the mailbox gives back what it was given"),
        }
    }

    /// Whether the core takes no more notices.
    pub fn has_ended(&self, core: usize) -> bool {
        self.shared.mailbox(core).ordered() == crate::mailbox::Phase::Ended
    }
}

impl<N> Clone for Postbox<N> {
    fn clone(&self) -> Postbox<N> {
        Postbox { shared: self.shared.clone(), notice: PhantomData }
    }
}
