//! Schedules: a message enqueued at every tick of an expression, once over the fleet.

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
