//! What measures Baton. So far: [`load`], the load generator behind `baton-load`.

#![forbid(unsafe_code)]

pub mod load;
