//! Tests of the doctor, the metrics and the web console on real servers.

mod browser;
mod chromium;
mod doctor;
mod metrics;
mod own_metrics;
mod web;
