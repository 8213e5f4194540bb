#![doc = include_str!("../../../docs/observability.md")]
