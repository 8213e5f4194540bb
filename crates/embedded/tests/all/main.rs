//! What the crate promises, with real servers. One process of this binary plays the owner that is
//! killed, and others run with an environment of their own: see `again`.

mod again;
mod speak;
mod find;
mod fetch;
mod temporary;
mod kept;
mod killed;
mod shared;
mod delay_proxy;
