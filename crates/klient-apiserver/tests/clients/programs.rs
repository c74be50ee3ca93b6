//! Programs of other libraries, which check the server themselves and request faults while they run.
//!
//! A line `do: WORD` on a program's output requests a fault, and `done` on its input confirms it. The program exits with 0
//! if nothing was wrong.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use http::Method;
use klient_apiserver::{ApiServer, Fault};

use crate::endpoint::{Endpoint, skip};

#[test]
fn client_go_and_controller_runtime_work_unmodified() {
    match std::env::var_os("KLIENT_CLIENT_GO") {
        Some(program) => run(program.as_ref()),
        None => skip("the program of client-go, since KLIENT_CLIENT_GO names none"),
    }
}

#[test]
fn kube_rs_works_unmodified() {
    match std::env::var_os("KLIENT_CLIENT_KUBE_RS") {
        Some(program) => run(program.as_ref()),
        None => skip("the program of kube-rs, since KLIENT_CLIENT_KUBE_RS names none"),
    }
}

fn run(program: &Path) {
    let endpoint = Endpoint::start();
    let mut child = Command::new(program)
        .env("KUBECONFIG", endpoint.kubeconfig())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut input = child.stdin.take().unwrap();
    let mut asked = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        match line.strip_prefix("do: ") {
            Some(word) => {
                perform(&endpoint.server, word);
                asked += 1;
                input.write_all(b"done\n").unwrap();
            }
            None => std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap(),
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success(), "{}: {status}", program.display());
    assert!(asked > 0, "no fault was asked for");
}

/// Injects the fault that a program requests.
fn perform(server: &ApiServer, word: &str) {
    match word {
        "end-watches" => server.end_watches(),
        // The next watches break within an event, too.
        "cut-watches" => {
            server.inject(Fault::cut_after(300).on_watches(true).times(2));
            server.end_watches();
        }
        // Watches fail until everything that happened meanwhile is compacted.
        "forget" => {
            server.inject(Fault::internal_error().on_method(Method::GET).on_watches(true));
            server.end_watches();
        }
        "remember" => {
            server.compact();
            server.clear_faults();
        }
        _ => panic!("{word} is no fault"),
    }
}
