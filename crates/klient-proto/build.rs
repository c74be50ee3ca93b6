//! Tells the generated code which Kubernetes minor the final binary chose in k8s-openapi.
//!
//! Sets `k8s_from = "33"` up to the chosen minor and `k8s_until` from it on, so that `cfg(k8s_from = "35")` reads
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
    assert!(MINORS.contains(&chosen), "klient-proto has no codecs for Kubernetes 1.{chosen}; it has {MINORS:?}");
    for minor in MINORS {
        if minor <= chosen {
            println!("cargo::rustc-cfg=k8s_from=\"{minor}\"");
        }
        if minor >= chosen {
            println!("cargo::rustc-cfg=k8s_until=\"{minor}\"");
        }
    }
}

/// k8s-openapi's build script publishes its version as `0x00_01_MM_00`, under a name that carries its own release.
fn chosen_minor() -> u32 {
    let version = std::env::vars()
        .find(|(name, _)| name.starts_with("DEP_K8S_OPENAPI_") && name.ends_with("_VERSION"))
        .and_then(|(_, value)| value.parse::<u32>().ok());
    version.expect("k8s-openapi publishes the version that is enabled") >> 8 & 0xff
}
