//! Where operators are answered. A reload may move it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::admin::Admin;
use super::listener::Listener;
use crate::config::AdminAddress;

/// The admin address, which is served on the control thread.
pub(crate) struct Reception {
    handle: Handle,
    admin: Arc<Admin>,
    place: Mutex<Option<Place>>,
}

struct Place {
    /// As the configuration names it.
    asked: AdminAddress,
    /// The port filled in.
    address: AdminAddress,
    serving: AbortHandle,
}

/// Where it is to be from now on; made by [`Reception::open`].
pub(crate) struct Move(Next);

enum Next {
    Stay,
    Leave,
    To { asked: AdminAddress, address: AdminAddress, listener: Listener },
}

impl Reception {
    pub(super) fn new(handle: Handle, admin: Admin) -> Reception {
        Reception { handle, admin: Arc::new(admin), place: Mutex::default() }
    }

    /// Where it listens, the port filled in.
    pub(crate) fn address(&self) -> Option<AdminAddress> {
        self.place().as_ref().map(|place| place.address.clone())
    }

    /// Listens where `asked` says, if that is elsewhere. Nobody is answered there before
    /// [`Reception::move_to`]; where that does not come, nothing has changed.
    ///
    /// Errors: the address or the socket's path cannot be had.
    pub(crate) fn open(&self, asked: Option<&AdminAddress>) -> io::Result<Move> {
        let Some(asked) = asked else { return Ok(Move(Next::Leave)) };
        if self.place().as_ref().is_some_and(|place| place.asked == *asked) {
            return Ok(Move(Next::Stay));
        }
        let listener = Listener::bind(asked)?;
        let address = listener.address()?;
        Ok(Move(Next::To { asked: asked.clone(), address, listener }))
    }

    /// Answers from there on. Who is connected stays so: the answer to a reload comes by the way
    /// it was asked for.
    pub(crate) fn move_to(&self, Move(next): Move) {
        let mut place = self.place();
        let next = match next {
            Next::Stay => return,
            Next::Leave => None,
            Next::To { asked, address, listener } => {
                let serving = self.handle.spawn(listener.serve(self.admin.clone()));
                Some(Place { asked, address, serving: serving.abort_handle() })
            }
        };
        if let Some(before) = std::mem::replace(&mut *place, next) {
            before.serving.abort();
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<Place>> {
        self.place.lock().expect("no holder of this lock panics")
    }
}
