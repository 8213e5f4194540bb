//! The crate's guarantees, with real servers. One process of this binary plays the owner that is
//! killed. Others run with their own environment: see `again`.

mod again;
mod speak;
mod find;
mod fetch;
mod temporary;
mod kept;
mod killed;
mod shared;
mod delay_proxy;
