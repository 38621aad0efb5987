//! No task holds up its core, however much it could do at once.

use std::cell::Cell;
use std::io::{IoSlice, Read, Write};
use std::rc::Rc;
use std::time::Duration;

use baton_runtime::Core;

use crate::on_core::{accept, connect, listen, start};
use crate::support::{PATIENCE, for_each_driver};

/// Steps that could all be taken at once.
const STEPS: usize = 200;

/// Turns that a neighbour must have had meanwhile. A turn has 32 steps.
const TURNS: usize = 5;

/// A neighbour that counts its turns until it is dropped.
struct Neighbour {
    turns: Rc<Cell<usize>>,
    gone: Rc<Cell<bool>>,
}

impl Neighbour {
    fn new(core: &Core) -> Neighbour {
        let neighbour = Neighbour { turns: Rc::default(), gone: Rc::default() };
        let (turns, gone, handle) = (neighbour.turns.clone(), neighbour.gone.clone(), core.clone());
        core.spawn(async move {
            while !gone.get() {
                turns.set(turns.get() + 1);
                handle.yield_now().await;
            }
        });
        neighbour
    }

    /// Its turns while `steps` are taken.
    async fn turns_during(&self, steps: impl Future<Output = ()>) -> usize {
        let before = self.turns.get();
        steps.await;
        self.turns.get() - before
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.gone.set(true);
    }
}

#[test]
fn a_reader_whose_bytes_are_all_there_gives_way() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let reader = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(PATIENCE);
            // The peer writes all of it at once, and then tells over a second connection.
            let told = connect(&core, address).await;
            assert_eq!(told.read(&mut [0], &timer).await.unwrap(), 1);
            let neighbour = Neighbour::new(&core);
            neighbour
                .turns_during(async {
                    for _ in 0..STEPS {
                        assert_eq!(stream.read(&mut [0; 10], &timer).await.unwrap(), 10);
                    }
                })
                .await
        });
        let mut peer = accept(&listener);
        peer.write_all(&[1; 10 * STEPS]).unwrap();
        accept(&listener).write_all(&[1]).unwrap();
        let turns = reader.finish();
        assert!(turns >= TURNS, "{turns} turns of a neighbour during {STEPS} reads");
    });
}

#[test]
fn a_writer_whose_bytes_all_fit_gives_way() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let writer = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(PATIENCE);
            let neighbour = Neighbour::new(&core);
            neighbour
                .turns_during(async {
                    for _ in 0..STEPS {
                        let mut parts = [IoSlice::new(b"ten bytes.")];
                        stream.write_all(&mut parts, &timer).await.unwrap();
                    }
                })
                .await
        });
        let mut received = Vec::new();
        accept(&listener).read_to_end(&mut received).unwrap();
        assert_eq!(received.len(), 10 * STEPS);
        let turns = writer.finish();
        assert!(turns >= TURNS, "{turns} turns of a neighbour during {STEPS} writes");
    });
}

#[test]
fn a_task_that_takes_no_notice_of_its_timeouts_gives_way() {
    for_each_driver(|driver| {
        let (listener, address) = listen();
        let waiter = start(driver, async move |core: Core| {
            let (stream, timer) = (connect(&core, address).await, core.timer());
            timer.set(Duration::ZERO);
            timer.expired().await;
            let neighbour = Neighbour::new(&core);
            neighbour
                .turns_during(async {
                    for _ in 0..STEPS {
                        stream.readable(&timer).await.unwrap_err();
                    }
                })
                .await
        });
        let _peer = accept(&listener);
        let turns = waiter.finish();
        assert!(turns >= TURNS, "{turns} turns of a neighbour during {STEPS} waits");
    });
}
