//! Selects the generated code for the Kubernetes minor of k8s-openapi in the final binary.
//!
//! Sets `k8s_from = "33"` up to the selected minor and `k8s_until` from it on, so that `cfg(k8s_from = "35")` means
//! "1.35 or newer".

use std::ops::RangeInclusive;

const MINORS: RangeInclusive<u32> = 33..=37;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let values: Vec<String> = MINORS.map(|minor| format!("\"{minor}\"")).collect();
    for name in ["k8s_from", "k8s_until"] {
        println!("cargo::rustc-check-cfg=cfg({name}, values({}))", values.join(", "));
    }
    let chosen = chosen_minor();
    assert!(
        MINORS.contains(&chosen),
        "klient-proto has no codecs for Kubernetes 1.{chosen}: expected one of {MINORS:?}"
    );
    for minor in MINORS {
        if minor <= chosen {
            println!("cargo::rustc-cfg=k8s_from=\"{minor}\"");
        }
        if minor >= chosen {
            println!("cargo::rustc-cfg=k8s_until=\"{minor}\"");
        }
    }
}

/// Returns the minor that k8s-openapi's build script publishes as `0x00_01_MM_00`, under a name with its own release.
fn chosen_minor() -> u32 {
    let version = std::env::vars()
        .find(|(name, _)| name.starts_with("DEP_K8S_OPENAPI_") && name.ends_with("_VERSION"))
        .and_then(|(_, value)| value.parse::<u32>().ok());
    version.expect("k8s-openapi publishes the version that is enabled") >> 8 & 0xff
}
