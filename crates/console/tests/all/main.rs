//! Each check finds what it is for in a real server, and nothing where all is well.

mod browser;
mod chromium;
mod doctor;
mod metrics;
mod own_metrics;
mod web;
