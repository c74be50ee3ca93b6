//! Resolves a kubeconfig and overrides to settings.
//!
//! All problems of the selected entries are reported at once. Entries that are not selected are not checked.
//! In client-go: `DirectClientConfig`.

use std::{path::Path, sync::Arc};

use super::{
    Config, Credentials, ExecPlugin, Proxy,
    checks::{Checks, Entry},
    server::{parse_proxy, parse_server},
    tls::Tls,
};
use crate::{
    Error,
    client::config::{
        Kubeconfig, Overrides,
        kubeconfig::{
            AuthInfo, Cluster, Context, Entries,
            problem::{Problem, error_for},
        },
    },
};

/// Returns the settings, or `None` if neither a context nor an override selects a cluster.
pub(super) fn resolve(
    kubeconfig: &Kubeconfig,
    overrides: &Overrides,
    fallback_namespace: impl FnOnce() -> String,
) -> Result<Option<Config>, Error> {
    let selected = Selected::new(kubeconfig, overrides)?;
    let cluster = overrides.apply_to_cluster(selected.cluster);
    let user = overrides.apply_to_user(selected.user);
    let mut checks = Checks::default();
    let entry = selected.user_entry();
    let client_certificate = checks.client_certificate(&user, overrides, &entry);
    let impersonation = checks.impersonation(&user, overrides, &entry);
    let credentials = checks.credentials(&user, overrides, &entry);
    let namespace = selected.namespace(overrides, &mut checks);
    if !selected.names_cluster() && cluster == Cluster::default() {
        return error_for(checks.problems).map_or(Ok(None), Err);
    }
    let entry = selected.cluster_entry();
    let trust = checks.trust(&cluster, overrides, &entry);
    let tls_by_default = client_certificate.is_some() || cluster.insecure_skip_tls_verify || trust_is_given(&cluster);
    let server = match &cluster.server {
        Some(server) => parse_server(server, tls_by_default),
        None => Err("is required".to_owned()),
    };
    let server = checks.keep(&entry.field("server", overrides.cluster.server.is_some()), server);
    let proxy = cluster.proxy_url.as_deref().and_then(|proxy| {
        checks.keep(&entry.field("proxy-url", overrides.cluster.proxy_url.is_some()), parse_proxy(proxy))
    });
    if let Some(error) = error_for(checks.problems) {
        return Err(error);
    }
    let Some(server) = server else { return Ok(None) };
    let mut config = Config {
        namespace: namespace.unwrap_or_else(fallback_namespace),
        impersonation,
        proxy: proxy.map(Proxy::Via).unwrap_or_default(),
        request_timeout: overrides.request_timeout,
        disable_compression: cluster.disable_compression,
        ..Config::at(server)
    };
    // Credentials are never sent to a server without TLS.
    if config.uses_tls() {
        config.tls = Tls { trust, server_name: cluster.tls_server_name.clone(), client_certificate, ..Tls::default() };
        config.credentials = for_cluster(credentials, &cluster);
    }
    Ok(Some(config))
}

/// Returns the reason why there is no server to connect to.
pub(super) fn nothing_selected(kubeconfig: &Kubeconfig) -> String {
    let names: Vec<&str> = kubeconfig.contexts.names().collect();
    match (kubeconfig.is_empty(), names.is_empty()) {
        (true, _) => "there is no kubeconfig, or it is empty".to_owned(),
        (false, true) => "no cluster is selected, and there are no contexts".to_owned(),
        (false, false) => format!("no context is selected: set current-context to one of {}", names.join(", ")),
    }
}

fn trust_is_given(cluster: &Cluster) -> bool {
    cluster.certificate_authority.is_some() || cluster.certificate_authority_data.is_some()
}

/// Adds the configuration for plugins in the cluster's entry.
fn for_cluster(credentials: Credentials, cluster: &Cluster) -> Credentials {
    match credentials {
        Credentials::Exec(plugin) => {
            let extension = cluster.extensions.get(EXEC_EXTENSION).map(|extension| extension.value.clone());
            Credentials::Exec(Box::new(ExecPlugin { cluster_extension: extension, ..*plugin }))
        }
        other => other,
    }
}

/// The selected context, cluster and user of the files.
struct Selected<'a> {
    kubeconfig: &'a Kubeconfig,
    context_name: Option<&'a str>,
    context: Option<&'a Context>,
    cluster_name: Option<&'a str>,
    cluster: Option<&'a Cluster>,
    user_name: Option<&'a str>,
    user: Option<&'a AuthInfo>,
}

impl<'a> Selected<'a> {
    fn new(kubeconfig: &'a Kubeconfig, overrides: &'a Overrides) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let context_name = overrides.context.as_deref().or(kubeconfig.current_context.as_deref());
        let entry = match overrides.context {
            Some(_) => (None, "context override".to_owned()),
            None => (kubeconfig.current_context_origin(), "current-context".to_owned()),
        };
        let context = look_up("context", &kubeconfig.contexts, context_name, entry, &mut problems);
        let entry = |field: &str, overridden: bool| match (overridden, context_name) {
            (false, Some(name)) => {
                (kubeconfig.contexts.origin(name).map(Arc::from), format!("context {name:?}: {field}"))
            }
            _ => (None, format!("{field} override")),
        };
        let of_context = context.and_then(|context| context.cluster.as_deref());
        let cluster_name = overrides.cluster_name.as_deref().or(of_context);
        let cluster_entry = entry("cluster", overrides.cluster_name.is_some());
        let cluster = look_up("cluster", &kubeconfig.clusters, cluster_name, cluster_entry, &mut problems);

        let of_context = context.and_then(|context| context.user.as_deref());
        let user_name = overrides.user_name.as_deref().or(of_context);
        let user_entry = entry("user", overrides.user_name.is_some());
        let user = look_up("user", &kubeconfig.users, user_name, user_entry, &mut problems);
        match error_for(problems) {
            Some(error) => Err(error),
            None => Ok(Self { kubeconfig, context_name, context, cluster_name, cluster, user_name, user }),
        }
    }

    /// Returns whether a cluster is named, so that an empty one is an error and not a missing configuration.
    fn names_cluster(&self) -> bool {
        self.cluster_name.is_some() || self.context.is_some()
    }

    fn cluster_entry(&self) -> Entry {
        match (self.cluster_name, self.context_name) {
            (Some(name), _) => Entry::new("cluster", Some(name), self.kubeconfig.clusters.origin(name)),
            // There is no such entry, so the message names the context that should refer to one.
            (None, Some(name)) if self.context.is_some_and(|context| context.cluster.is_none()) => {
                Entry::new("context", Some(name), self.kubeconfig.contexts.origin(name))
            }
            (None, _) => Entry::new("cluster", None, None),
        }
    }

    fn user_entry(&self) -> Entry {
        Entry::new("user", self.user_name, self.user_name.and_then(|name| self.kubeconfig.users.origin(name)))
    }

    fn namespace(&self, overrides: &Overrides, checks: &mut Checks) -> Option<String> {
        let given = overrides.namespace.as_ref().filter(|namespace| !namespace.is_empty());
        let namespace = given.or(self.context.and_then(|context| context.namespace.as_ref()))?;
        let origin = self.context_name.and_then(|name| self.kubeconfig.contexts.origin(name));
        let entry = Entry::new("context", self.context_name, origin).field("namespace", given.is_some());
        checks.keep(&entry, check_label(namespace).map(|()| namespace.clone()))
    }
}

/// Finds an entry by name, or records that it is not defined.
fn look_up<'a, T>(
    what: &str,
    entries: &'a Entries<T>,
    name: Option<&str>,
    (file, entry): (Option<Arc<Path>>, String),
    problems: &mut Vec<Problem>,
) -> Option<&'a T> {
    let name = name?;
    let found = entries.get(name);
    if found.is_none() {
        let known: Vec<&str> = entries.names().collect();
        let known = if known.is_empty() { "there are none".to_owned() } else { format!("known: {}", known.join(", ")) };
        let why = format!("{what} {name:?} is not defined, {known}");
        problems.push(Problem::new(entry, why).in_file(file));
    }
    found
}

fn check_label(text: &str) -> Result<(), &'static str> {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let whole = text.chars().all(|c| c == '-' || alphanumeric(c));
    match whole && text.len() <= 63 && text.starts_with(alphanumeric) && text.ends_with(alphanumeric) {
        true => Ok(()),
        false => Err("must be at most 63 lower case letters, digits and inner dashes"),
    }
}

/// The extension of a cluster's entry with the configuration for plugins.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";
