//! Each check finds what it is for in a real server, and nothing where all is well.

mod browser;
mod doctor;
mod web;
