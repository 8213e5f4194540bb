//! What an operator of Trunkline looks at. The library does not depend on it.

pub mod doctor;
