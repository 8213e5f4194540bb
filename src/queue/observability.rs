#![doc = include_str!("../../OBSERVABILITY.md")]
