//! The program of the chaos suite, with a few worlds. `cargo xtask chaos` runs more.

use std::process::Command;

#[test]
fn program_passes_two_worlds_and_names_its_seed() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_klient-chaos")).args(["--seed", "3", "--worlds", "2"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("seed 3"), "{text}");
}

#[test]
fn program_refuses_unknown_options() {
    let output = Command::new(env!("CARGO_BIN_EXE_klient-chaos")).arg("--nonsense").output().unwrap();
    assert!(!output.status.success());
}
