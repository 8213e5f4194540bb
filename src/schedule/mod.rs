//! Schedules: a message is enqueued at every tick of an expression, once for all processes
//! together.

mod expression;
mod draft;
mod ticks;
mod set;
mod list;
mod change;
mod claim;
mod fire;
mod run;

pub use self::{
    draft::{Missed, Schedule},
    list::Scheduled,
};
