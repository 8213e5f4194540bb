//! Never compiled.
