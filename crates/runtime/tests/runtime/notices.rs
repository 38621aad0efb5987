//! What other threads tell the service of a core.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_runtime::{Accepted, Core, Runtime};

use crate::support::{for_each_driver, listening, stop, wait_until};

/// Adds up what it is told, on the core it is told on.
struct Sums {
    core: Core,
    sums: Arc<Vec<AtomicUsize>>,
}

impl baton_runtime::Service for Sums {
    type Notice = usize;

    async fn serve(self: Rc<Self>, _connection: Accepted) {}

    fn notice(self: Rc<Self>, notice: usize) {
        self.sums[self.core.index()].fetch_add(notice, Ordering::Relaxed);
    }
}

#[test]
fn each_notice_reaches_its_core_once_and_a_core_that_has_ended_gives_it_back() {
    for_each_driver(|driver| {
        let sums: Arc<Vec<AtomicUsize>> = Arc::new((0..2).map(|_| AtomicUsize::new(0)).collect());
        let of_cores = sums.clone();
        let make = move |core| Sums { core, sums: of_cores.clone() };
        let runtime = Runtime::start(&listening(driver, 2), make).unwrap();
        let postbox = runtime.postbox::<usize>();
        let mut accepted = [0, 0];
        for number in 1..=5_000 {
            let core = number % 2;
            // A full mailbox gives it back, and that is all that may be lost.
            match postbox.post(core, number) {
                Ok(()) => accepted[core] += number,
                Err(back) => assert_eq!(back, number),
            }
        }
        wait_until("all notices have come", || {
            accepted == [0, 1].map(|core: usize| sums[core].load(Ordering::Relaxed))
        });
        assert!(accepted.iter().all(|sum| *sum > 0));
        stop(runtime);
        assert!(postbox.has_ended(0) && postbox.has_ended(1));
        assert_eq!(postbox.post(0, 7), Err(7));
    });
}
