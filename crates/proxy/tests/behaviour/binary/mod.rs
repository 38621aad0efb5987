//! The binary as a process: what it prints and how it ends, and what it holds while it serves.

mod ending;
mod operating;
mod process;
mod resources;
mod speaking;
