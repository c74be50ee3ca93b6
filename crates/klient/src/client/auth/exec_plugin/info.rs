//! The request to a program, in the variable `KUBERNETES_EXEC_INFO`.

use serde_json::{Map, Value, json};

use crate::{
    Error,
    client::config::{Config, EmbeddedData, ExecPlugin, Proxy, Trust},
};

/// Returns the request as JSON.
pub(super) fn exec_info(plugin: &ExecPlugin, cluster: Option<&Value>, interactive: bool) -> String {
    let mut spec = Map::new();
    spec.insert("interactive".to_owned(), interactive.into());
    if let Some(cluster) = cluster {
        spec.insert("cluster".to_owned(), cluster.clone());
    }
    json!({"kind": "ExecCredential", "apiVersion": plugin.api_version.as_str(), "spec": spec}).to_string()
}

/// Returns the cluster information. Files are inlined, because the program may run elsewhere.
pub(super) fn cluster(plugin: &ExecPlugin, config: &Config) -> Result<Value, Error> {
    let mut cluster = Map::new();
    let mut put = |field: &str, value: Value| drop(cluster.insert(field.to_owned(), value));
    put("server", config.server.to_string().trim_end_matches('/').into());
    if let Some(name) = &config.tls.server_name {
        put("tls-server-name", name.as_str().into());
    }
    match &config.tls.trust {
        Trust::System => {}
        Trust::Anyone => put("insecure-skip-tls-verify", true.into()),
        Trust::Authority(pem) => {
            put("certificate-authority-data", EmbeddedData::from_bytes(pem.load()?).as_base64().into());
        }
    }
    if let Proxy::Via(proxy) = &config.proxy {
        // `Uri` adds a path that the configuration does not have.
        put("proxy-url", proxy.to_string().trim_end_matches('/').into());
    }
    if config.disable_compression {
        put("disable-compression", true.into());
    }
    if let Some(extension) = &plugin.cluster_extension {
        put("config", extension.clone());
    }
    Ok(cluster.into())
}
