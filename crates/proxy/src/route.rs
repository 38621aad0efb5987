//! Which route a request takes, and what the route makes of it. Pure: no socket, clock or lock.

mod pattern;
mod template;

pub use pattern::{HostPattern, PathPattern, PatternError};
pub(crate) use template::{Piece, Placeholder};
pub use template::{Template, TemplateError};
