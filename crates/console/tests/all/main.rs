//! Each check finds what it is for in a real server, and nothing where all is well.

#[path = "../../../../tests/all/required.rs"]
mod required;
mod browser;
mod chromium;
mod doctor;
mod metrics;
mod own_metrics;
mod web;
