//! The library behind the `klient` command: the controller that `klient demo` runs.
//!
//! The package exists for the command. The library holds only what the examples of klient's repository share with it.

pub mod sample_controller;
