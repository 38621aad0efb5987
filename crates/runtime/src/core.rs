//! One core: a pinned thread's executor, timers, buffers and mailbox.
//!
//! Owned by its thread; `Core` is a handle that stays on it. Other threads reach the core through
//! its mailbox alone.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::accept::{Accepted, Dealer, Service, Sink, accept_loop};
use crate::blocking::Pending;
use crate::buffer::{Buffer, BufferPool, BufferSize};
use crate::counters::CoreCounters;
use crate::driver::{Awaited, Driver};
use crate::limits::MAILBOX_MESSAGES;
use crate::look::look_round;
use crate::mailbox::{Mailbox, Message, Phase};
use crate::postbox::Postbox;
use crate::reactor::Reactor;
use crate::shared::Shared;
use crate::source::Source;
use crate::stream::Stream;
use crate::task::{Contained, Tasks};
use crate::timer::{Timer, Wheel};

mod heartbeat;
mod task;

use task::Task;

/// How long a connection that is idle when its core drains may still start a request.
/// A client whose request crosses our decision to stop is answered instead of reset.
pub(crate) const DRAIN_IDLE_GRACE: Duration = Duration::from_millis(500);

/// A handle of the core that the current thread is.
#[derive(Clone)]
pub struct Core {
    state: Rc<State>,
}

struct State {
    index: usize,
    driver: Driver,
    shared: Arc<Shared>,
    reactor: Rc<Reactor>,
    wheel: Wheel,
    buffers: BufferPool,
    phase: Cell<Phase>,
    /// Nothing is left to do, and nothing can come.
    over: Cell<bool>,
    tasks: Tasks,
    /// Whoever waits for the phase or the last task.
    observers: RefCell<Vec<Waker>>,
    /// Tasks that gave way until the reactor has looked round once.
    yielded: RefCell<Vec<Waker>>,
    pending: Pending,
    /// Listeners that are given up and have not ended yet.
    given_up: RefCell<Vec<usize>>,
    /// Most tasks that were seen at once since memory was last given back to the system.
    tasks_most: Cell<usize>,
    /// Bytes of buffers freed since memory was last given back to the system.
    freed: Cell<usize>,
}

impl Core {
    pub(crate) fn new(index: usize, driver: Driver, reactor: Reactor, shared: Arc<Shared>) -> Core {
        Core {
            state: Rc::new(State {
                index,
                driver,
                shared,
                reactor: Rc::new(reactor),
                wheel: Wheel::new(),
                buffers: BufferPool::default(),
                phase: Cell::new(Phase::Running),
                over: Cell::new(false),
                tasks: Tasks::default(),
                observers: RefCell::default(),
                yielded: RefCell::default(),
                pending: Pending::default(),
                given_up: RefCell::default(),
                tasks_most: Cell::new(0),
                freed: Cell::new(0),
            }),
        }
    }

    /// Its number, `0..cores`.
    pub fn index(&self) -> usize {
        self.state.index
    }

    /// How many cores serve connections in this runtime.
    pub fn cores(&self) -> usize {
        self.state.shared.cores()
    }

    /// What its reactor runs on.
    pub fn driver(&self) -> Driver {
        self.state.driver
    }

    /// Ticks since the core started: the coarse clock, see [`crate::TICK`].
    pub fn tick(&self) -> u64 {
        self.state.wheel.now()
    }

    /// A new deadline, not yet armed.
    pub fn timer(&self) -> Timer {
        self.state.wheel.timer()
    }

    /// Connects to `address`; `TimedOut` once `timer` expires.
    ///
    /// # Errors
    /// What connect(2) says; what is short of descriptors is told by
    /// [`crate::is_out_of_descriptors`].
    pub async fn connect(&self, address: SocketAddr, timer: &Timer) -> io::Result<Stream> {
        Stream::connect(self, address, timer).await
    }

    /// An empty buffer from the core's pool.
    pub fn buffer(&self, size: BufferSize) -> Buffer {
        self.state.buffers.take(size)
    }

    /// The core's own numbers.
    pub fn counters(&self) -> &CoreCounters {
        self.state.shared.counters(self.state.index)
    }

    /// Whether the runtime stops: requests under way are finished, connections are not kept.
    pub fn is_draining(&self) -> bool {
        self.state.phase.get() >= Phase::Draining
    }

    /// Starts a task on this core. If it panics, the panic is logged and counted, and nothing else
    /// of the core is touched. The runtime waits for it when it drains; when it aborts, the task is
    /// polled once more, with every [`Timer`] expired, and dropped if it still waits.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        let core = self.clone();
        let number = self.state.tasks.begin();
        self.counters().tasks.add(1);
        monoio::spawn(Task { core, number, contained: Contained::new(task) });
    }

    /// Waits `duration`, to the millisecond. For pauses; deadlines take a [`Timer`].
    pub async fn sleep(&self, duration: Duration) {
        monoio::time::sleep(duration).await;
    }

    /// Lets everything else that is ready on this core run first, the reactor included.
    ///
    /// Waking oneself would not do: the executor looks for timers and messages only when its run
    /// queue is empty. So the task leaves the queue, and the core's own bell brings it back.
    pub async fn yield_now(&self) {
        let mut rung = false;
        poll_fn(|cx| {
            if rung {
                return Poll::Ready(());
            }
            rung = true;
            self.state.yielded.borrow_mut().push(cx.waker().clone());
            self.mailbox().ring();
            Poll::Pending
        })
        .await;
    }

    /// Runs `job` on a thread that may block and waits for its result.
    ///
    /// # Errors
    /// [`crate::BlockingError`]: the queue is full, or the job panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, crate::BlockingError> {
        let shared = &self.state.shared;
        self.state.pending.run(shared, self.state.index, job).await
    }

    /// A way to tell the service of any core something. `N` is the service's
    /// [`Service::Notice`].
    pub fn postbox<N: Send + 'static>(&self) -> Postbox<N> {
        Postbox::new(self.state.shared.clone())
    }

    /// Whether nobody wants connections of this listener any more.
    pub(crate) fn is_given_up(&self, listener: usize) -> bool {
        self.state.given_up.borrow().contains(&listener)
    }

    pub(crate) fn listener_ended(&self, listener: usize) {
        self.state.given_up.borrow_mut().retain(|given_up| *given_up != listener);
    }

    /// Starts to accept from a listener.
    pub(crate) fn accept_from<S: Service>(
        &self,
        listener: usize,
        socket: Source,
        service: &Option<Rc<S>>,
    ) {
        let sink = match service {
            Some(service) => Sink::Own(service.clone()),
            None => Sink::Deal(Dealer::new()),
        };
        self.spawn(accept_loop(self.clone(), socket, listener, sink));
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.state.shared
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state.phase.get()
    }

    /// Ready once the core drains; else wakes the task when it begins to.
    pub(crate) fn poll_draining(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_draining() {
            return Poll::Ready(());
        }
        self.observe(cx);
        Poll::Pending
    }

    /// What knows the core's sockets.
    pub(crate) fn reactor(&self) -> &Rc<Reactor> {
        &self.state.reactor
    }

    /// What ends the core's wait, known to the executor.
    pub(crate) fn awaken(&self) -> io::Result<Awakeners> {
        Ok(Awakeners {
            bell: Awaited::new(self.mailbox().bell().try_clone_to_owned()?)?,
            sockets: Awaited::new(self.state.reactor.fd()?)?,
        })
    }

    /// The core's life: heartbeat, sockets and mailbox, until it drains and nothing is left to do.
    /// An acceptor has no service.
    pub(crate) async fn live<S: Service>(
        &self,
        awakeners: Awakeners,
        service: Option<Rc<S>>,
    ) -> io::Result<()> {
        let mut heartbeat = pin!(self.heartbeat());
        let mut mailbox = pin!(self.attend(&awakeners.bell, &service));
        let mut look = pin!(monoio::spawn(look_round(self.clone(), awakeners.sockets)));
        poll_fn(|cx| {
            self.observe(cx);
            // The heartbeat never ends; the mailbox ends only if its bell breaks.
            let _beating = heartbeat.as_mut().poll(cx);
            if let Poll::Ready(error) = mailbox.as_mut().poll(cx) {
                return Poll::Ready(Err(error));
            }
            if self.may_end() && !self.state.over.replace(true) {
                self.wake_observers();
            }
            look.as_mut().poll(cx)
        })
        .await
    }

    /// Whether messages wait that only a wait of the executor brings to notice.
    pub(crate) fn is_called(&self) -> bool {
        self.mailbox().is_rung()
    }

    /// Whether nothing is left to do; else wakes the task when that may have changed.
    pub(crate) fn is_over(&self, cx: &Context<'_>) -> bool {
        self.observe(cx);
        self.state.over.get()
    }

    /// Whether no task is left, and none can come.
    fn may_end(&self) -> bool {
        let idle = self.is_draining() && self.state.tasks.count() == 0;
        // In this order: what the acceptor sent before it ended is in the mailbox by then. When
        // aborting, what it sends later is dropped.
        idle && (self.phase() >= Phase::Aborting
            || (self.shared().deals_no_more(self.index()) && self.mailbox().waiting() == 0))
    }

    /// Takes messages until the bell breaks, and says how it broke.
    async fn attend<S: Service>(&self, bell: &Awaited, service: &Option<Rc<S>>) -> io::Error {
        loop {
            if let Err(error) = bell.readable().await {
                return error;
            }
            self.mailbox().open();
            for waker in self.state.yielded.take() {
                waker.wake();
            }
            // Looked at before the queue is emptied: what was sent before the order goes before it.
            let ordered = self.mailbox().ordered();
            for _ in 0..MAILBOX_MESSAGES {
                let Some(message) = self.mailbox().take() else { break };
                self.counters().messages.add(1);
                self.handle_message(message, service);
            }
            if self.mailbox().waiting() > 0 {
                self.mailbox().ring();
            }
            self.enter(ordered);
        }
    }

    fn handle_message<S: Service>(&self, message: Message, service: &Option<Rc<S>>) {
        match message {
            Message::Connection { socket, peer, listener, permit } => {
                let service = service.as_ref().expect("sockets are dealt to serving cores alone");
                match Stream::adopt(self, socket) {
                    Ok(stream) => {
                        let accepted = Accepted { stream, peer, listener };
                        crate::accept::serve(self, service, accepted, permit);
                    }
                    Err(error) => {
                        tracing::debug!(core = self.index(), %peer, %error, "a dealt socket broke");
                    }
                }
            }
            Message::Done { job } => self.state.pending.complete(job),
            Message::Notice(notice) => match (service, notice.downcast::<S::Notice>()) {
                (Some(service), Ok(notice)) => service.clone().notice(*notice),
                _ => tracing::error!(core = self.index(), "a notice that nobody here takes"),
            },
            Message::Listen { .. } if self.is_draining() => {}
            Message::Listen { listener, socket } => {
                match Source::new(self.reactor(), socket.into()) {
                    Ok(socket) => self.accept_from(listener, socket, service),
                    Err(error) => {
                        tracing::error!(core = self.index(), %error, "a listener is not watched");
                    }
                }
            }
            Message::Unlisten { listener } => {
                self.state.given_up.borrow_mut().push(listener);
                self.wake_observers();
            }
        }
    }

    // Running -> Draining: idle waits end soon, accept loops end after a last sweep.
    // -> Aborting: every wait ends now.
    fn enter(&self, phase: Phase) {
        if phase <= self.state.phase.get() {
            return;
        }
        self.state.phase.set(phase);
        if phase == Phase::Draining {
            self.state.wheel.hurry_idle(DRAIN_IDLE_GRACE);
        } else {
            self.state.wheel.abort();
            self.state.tasks.wake_all();
        }
        self.wake_observers();
    }

    fn task_ended(&self, number: usize) {
        self.state.tasks.end(number);
        self.counters().tasks.sub(1);
        if self.is_draining() && self.state.tasks.count() == 0 {
            self.wake_observers();
        }
    }

    fn observe(&self, cx: &Context<'_>) {
        let mut observers = self.state.observers.borrow_mut();
        if !observers.iter().any(|waker| waker.will_wake(cx.waker())) {
            observers.push(cx.waker().clone());
        }
    }

    fn wake_observers(&self) {
        for waker in self.state.observers.take() {
            waker.wake();
        }
    }

    fn mailbox(&self) -> &Mailbox {
        self.state.shared.mailbox(self.state.index)
    }
}

/// What ends the wait of a core.
pub(crate) struct Awakeners {
    /// The doorbell of its mailbox.
    bell: Awaited,
    /// What tells of its sockets.
    sockets: Awaited,
}
