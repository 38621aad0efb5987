//! Buffers, and the pool of a core that lends them.
//!
//! A connection borrows a buffer when bytes are there to be read and gives it back when all its
//! bytes are consumed; a connection that waits owns none. The last one returned is lent first, so
//! that it is still in the cache.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::limits::{
    BODY_BUFFER_BYTES, BODY_BUFFERS_FREE_MAX, HEAD_BUFFER_BYTES, HEAD_BUFFERS_FREE_MAX,
};

/// What a buffer is for, which decides its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// A message head and the first bytes of its body: [`HEAD_BUFFER_BYTES`].
    Head,
    /// A piece of a body on its way through: [`BODY_BUFFER_BYTES`].
    Body,
}

impl BufferSize {
    /// Bytes of a buffer of this size.
    pub const fn bytes(self) -> usize {
        match self {
            BufferSize::Head => HEAD_BUFFER_BYTES,
            BufferSize::Body => BODY_BUFFER_BYTES,
        }
    }
}

/// A byte buffer with a filled middle: `start <= end <= capacity`.
///
/// ```text
/// | consumed | filled | spare |
/// 0        start     end     capacity
/// ```
pub struct Buffer {
    storage: Box<[u8]>,
    start: usize,
    end: usize,
    /// Where the storage goes back to; `None` for a buffer without any.
    home: Option<(BufferPool, BufferSize)>,
}

impl Buffer {
    /// A buffer of no bytes, for whoever owns none at the moment. Does not allocate.
    pub fn none() -> Buffer {
        Buffer { storage: Box::default(), start: 0, end: 0, home: None }
    }

    /// The bytes that were read and not yet consumed.
    pub fn filled(&self) -> &[u8] {
        &self.storage[self.start..self.end]
    }

    /// As [`Buffer::filled`], to change in place.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.end]
    }

    /// Where the next read may write. Empty when the buffer is full up to its end; see
    /// [`Buffer::compact`].
    pub fn spare(&mut self) -> &mut [u8] {
        &mut self.storage[self.end..]
    }

    /// Declares the first `count` bytes of the spare room filled.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.capacity() - self.end, "a read fills at most the spare room");
        self.end += count;
    }

    /// Drops the first `count` filled bytes.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "only filled bytes can be consumed");
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Moves the filled bytes to the front, so that all other room is spare.
    pub fn compact(&mut self) {
        if self.start > 0 {
            self.storage.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    /// Bytes it holds at most.
    pub fn capacity(&self) -> usize {
        self.storage.len()
    }

    /// Filled bytes.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether no byte is filled.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some((pool, size)) = self.home.take() else { return };
        let storage = std::mem::take(&mut self.storage);
        let (free, most) = pool.list(size);
        let mut list = free.borrow_mut();
        if list.free.len() < most {
            list.free.push(storage);
        } else {
            pool.note_freed(storage.len());
        }
    }
}

/// The buffers of one core.
#[derive(Clone, Default)]
pub(crate) struct BufferPool {
    shared: Rc<FreeLists>,
}

#[derive(Default)]
struct FreeLists {
    head: RefCell<FreeList>,
    body: RefCell<FreeList>,
    /// Bytes of buffers freed since [`BufferPool::shrink`] was last asked for them.
    freed_bytes: Cell<usize>,
}

/// Free buffers of one size. `spare <= free.len()`: how many of them nobody has needed since the
/// last [`BufferPool::shrink`].
#[derive(Default)]
struct FreeList {
    free: Vec<Box<[u8]>>,
    spare: usize,
}

impl BufferPool {
    /// An empty buffer; its bytes are whatever the last user left.
    pub(crate) fn take(&self, size: BufferSize) -> Buffer {
        let mut list = self.list(size).0.borrow_mut();
        let storage = list.free.pop();
        list.spare = list.spare.min(list.free.len());
        let storage = storage.unwrap_or_else(|| vec![0; size.bytes()].into_boxed_slice());
        Buffer { storage, start: 0, end: 0, home: Some((self.clone(), size)) }
    }

    /// Frees half of the buffers that nobody has needed since the last call, so that the memory of
    /// a burst goes back in a few calls and a steady load keeps what it uses. Returns how many
    /// bytes of buffers were freed since the last call, these included.
    pub(crate) fn shrink(&self) -> usize {
        for size in [BufferSize::Head, BufferSize::Body] {
            let mut list = self.list(size).0.borrow_mut();
            let kept = list.free.len() - list.spare.div_ceil(2);
            self.note_freed((list.free.len() - kept) * size.bytes());
            list.free.truncate(kept);
            list.free.shrink_to(kept);
            list.spare = kept;
        }
        self.shared.freed_bytes.take()
    }

    fn note_freed(&self, bytes: usize) {
        self.shared.freed_bytes.set(self.shared.freed_bytes.get() + bytes);
    }

    /// The free list of a size, and the most it keeps.
    fn list(&self, size: BufferSize) -> (&RefCell<FreeList>, usize) {
        match size {
            BufferSize::Head => (&self.shared.head, HEAD_BUFFERS_FREE_MAX),
            BufferSize::Body => (&self.shared.body, BODY_BUFFERS_FREE_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &[u8]) -> Buffer {
        let mut buffer = BufferPool::default().take(BufferSize::Head);
        buffer.spare()[..text.len()].copy_from_slice(text);
        buffer.advance(text.len());
        buffer
    }

    #[test]
    #[should_panic(expected = "at most the spare room")]
    fn a_read_cannot_claim_more_than_the_spare_room() {
        BufferPool::default().take(BufferSize::Head).advance(HEAD_BUFFER_BYTES + 1);
    }

    #[test]
    #[should_panic(expected = "only filled bytes")]
    fn more_than_is_filled_cannot_be_consumed() {
        filled(b"abc").consume(4);
    }

    #[test]
    fn consumed_bytes_make_room_after_compacting() {
        let mut buffer = filled(&vec![b'x'; HEAD_BUFFER_BYTES]);
        buffer.consume(HEAD_BUFFER_BYTES - 2);
        assert!(buffer.spare().is_empty());
        buffer.compact();
        assert_eq!(buffer.filled(), b"xx");
        assert_eq!(buffer.spare().len(), HEAD_BUFFER_BYTES - 2);
    }

    #[test]
    fn an_emptied_buffer_starts_again_at_the_front() {
        let mut buffer = filled(b"abc");
        buffer.consume(3);
        assert_eq!(buffer.spare().len(), HEAD_BUFFER_BYTES);
    }

    #[test]
    fn the_pool_keeps_no_more_than_its_bound() {
        let pool = BufferPool::default();
        for (size, most) in
            [(BufferSize::Head, HEAD_BUFFERS_FREE_MAX), (BufferSize::Body, BODY_BUFFERS_FREE_MAX)]
        {
            let lent: Vec<Buffer> = (0..most + 10).map(|_| pool.take(size)).collect();
            drop(lent);
            assert_eq!(pool.list(size).0.borrow().free.len(), most);
        }
    }

    #[test]
    fn buffers_that_nobody_needs_are_freed_and_those_in_use_are_kept() {
        let pool = BufferPool::default();
        let free = || pool.list(BufferSize::Head).0.borrow().free.len();
        drop((0..64).map(|_| pool.take(BufferSize::Head)).collect::<Vec<_>>());
        pool.shrink();
        for _ in 0..10 {
            // A steady load needs 16 at once.
            drop((0..16).map(|_| pool.take(BufferSize::Head)).collect::<Vec<_>>());
            pool.shrink();
        }
        assert_eq!(free(), 16);
        let freed: usize = (0..10).map(|_| pool.shrink()).sum();
        assert_eq!(freed, 16 * HEAD_BUFFER_BYTES);
        assert_eq!(free(), 0);
    }
}
