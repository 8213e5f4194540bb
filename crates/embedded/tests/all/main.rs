//! The crate's guarantees, with real servers. Some tests run this binary again: as an owner that is
//! killed, or with a different environment. See `again`.

mod again;
mod speak;
mod find;
mod fetch;
mod temporary;
mod kept;
mod killed;
mod shared;
mod delay_proxy;
