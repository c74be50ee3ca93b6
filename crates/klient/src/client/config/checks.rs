//! Checks of the selected cluster and user.
//!
//! Each check returns the resolved part, and records the problems it finds. The caller then rejects the configuration.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    AuthProvider, ClientCertificate, Credentials, ExecApiVersion, ExecPlugin, Impersonation, InteractiveMode, Pem,
    Trust,
    credentials::why_not,
    exec_plugin::safe_for_terminal,
    pem::{self, Expected},
};
use crate::client::{
    config::EmbeddedData,
    config::Overrides,
    config::Secret,
    config::kubeconfig::{AuthInfo, AuthProviderConfig, Cluster, ExecConfig, problem::Problem},
};

/// The checks, with the problems found so far.
#[derive(Default)]
pub(super) struct Checks {
    pub(super) problems: Vec<Problem>,
}

/// The entry of a kubeconfig that a field belongs to.
pub(super) struct Entry {
    label: String,
    name: Option<String>,
    file: Option<Arc<Path>>,
}

/// A field, as named in a message.
pub(super) struct Field {
    text: String,
    file: Option<Arc<Path>>,
}

impl Entry {
    pub(super) fn new(what: &str, name: Option<&str>, file: Option<&Path>) -> Self {
        let label = name.map_or_else(|| what.to_owned(), |name| format!("{what} {name:?}"));
        Self { label, name: name.map(str::to_owned), file: file.map(Arc::from) }
    }

    /// Returns a field of the entry, or the override that replaces it.
    pub(super) fn field(&self, field: &str, overridden: bool) -> Field {
        match overridden {
            true => Field { text: format!("{field} override"), file: None },
            false => Field { text: format!("{}: {field}", self.label), file: self.file.clone() },
        }
    }
}

impl Checks {
    /// Returns the value of a result, or records the reason of its failure.
    pub(super) fn keep<T>(&mut self, field: &Field, result: Result<T, impl Into<String>>) -> Option<T> {
        result.map_err(|why| self.fail(field, why)).ok()
    }

    fn fail(&mut self, field: &Field, why: impl Into<String>) {
        self.problems.push(Problem::new(field.text.as_str(), why).in_file(field.file.clone()));
    }

    fn read(&mut self, field: &Field, path: &Path) -> Option<Vec<u8>> {
        match fs::read(path) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let problem = Problem::new(field.text.as_str(), format!("cannot read {}", path.display()));
                self.problems.push(problem.in_file(field.file.clone()).with_source(error));
                None
            }
        }
    }

    pub(super) fn trust(&mut self, cluster: &Cluster, overrides: &Overrides, entry: &Entry) -> Trust {
        let above = &overrides.cluster;
        let file = entry.field("certificate-authority", above.certificate_authority.is_some());
        let data = entry.field("certificate-authority-data", above.certificate_authority_data.is_some());
        let sources = (cluster.certificate_authority.as_ref(), cluster.certificate_authority_data.as_ref());
        let authority = self.pem((&file, &data), sources, Expected::Certificate);
        if cluster.insecure_skip_tls_verify && (sources.0.is_some() || sources.1.is_some()) {
            let field = entry.field("insecure-skip-tls-verify", above.insecure_skip_tls_verify);
            self.fail(&field, "cannot be set together with a certificate authority");
        }
        match authority {
            Some(authority) => Trust::Authority(authority),
            None if cluster.insecure_skip_tls_verify => Trust::Anyone,
            None => Trust::System,
        }
    }

    pub(super) fn client_certificate(
        &mut self,
        user: &AuthInfo,
        overrides: &Overrides,
        entry: &Entry,
    ) -> Option<ClientCertificate> {
        let above = &overrides.user;
        let file = entry.field("client-certificate", above.client_certificate.is_some());
        let data = entry.field("client-certificate-data", above.client_certificate_data.is_some());
        let sources = (user.client_certificate.as_ref(), user.client_certificate_data.as_ref());
        // A key without a certificate is ignored, as in client-go.
        if sources == (None, None) {
            return None;
        }
        let certificate = self.pem((&file, &data), sources, Expected::Certificate);
        let file = entry.field("client-key", above.client_key.is_some());
        let data = entry.field("client-key-data", above.client_key_data.is_some());
        let sources = (user.client_key.as_ref(), user.client_key_data.as_ref());
        if sources == (None, None) {
            self.fail(&file, "is required with a client certificate: set client-key or client-key-data");
        }
        let key = self.pem((&file, &data), sources, Expected::PrivateKey);
        Some(ClientCertificate { certificate: certificate?, key: key? })
    }

    fn pem(
        &mut self,
        (file_field, data_field): (&Field, &Field),
        sources: (Option<&PathBuf>, Option<&EmbeddedData>),
        expected: Expected,
    ) -> Option<Pem> {
        match sources {
            (None, None) => None,
            (Some(_), Some(_)) => {
                self.fail(data_field, "cannot be set together with the file");
                None
            }
            (Some(path), None) => {
                let text = self.read(file_field, path)?;
                self.keep(file_field, pem::check(&text, expected))?;
                Some(Pem::File(path.clone()))
            }
            (None, Some(data)) => {
                let text = self.keep(data_field, data.decode().ok_or("is not base64"))?;
                self.keep(data_field, pem::check(&text, expected))?;
                Some(Pem::Data(text))
            }
        }
    }

    pub(super) fn impersonation(
        &mut self,
        user: &AuthInfo,
        overrides: &Overrides,
        entry: &Entry,
    ) -> Option<Impersonation> {
        let above = &overrides.user;
        let Some(name) = &user.impersonate else {
            let more = [
                ("as-uid", user.impersonate_uid.is_some(), above.impersonate_uid.is_some()),
                ("as-groups", !user.impersonate_groups.is_empty(), !above.impersonate_groups.is_empty()),
                ("as-user-extra", !user.impersonate_extra.is_empty(), !above.impersonate_extra.is_empty()),
            ];
            for (field, _, overridden) in more.into_iter().filter(|(_, given, _)| *given) {
                self.fail(&entry.field(field, overridden), "requires a user to impersonate");
            }
            return None;
        };
        Some(Impersonation {
            user: name.clone(),
            uid: user.impersonate_uid.clone(),
            groups: user.impersonate_groups.clone(),
            extra: user.impersonate_extra.clone(),
        })
    }

    pub(super) fn credentials(&mut self, user: &AuthInfo, overrides: &Overrides, entry: &Entry) -> Credentials {
        let above = &overrides.user;
        let plugin = user.exec.as_ref().and_then(|exec| self.exec(exec, above.exec.is_some(), entry));
        let provider = user.auth_provider.as_ref().and_then(|provider| {
            if user.exec.is_some() {
                self.fail(
                    &entry.field("auth-provider", above.auth_provider.is_some()),
                    "cannot be set together with exec",
                );
            }
            self.provider(provider, above.auth_provider.is_some(), entry)
        });
        let has_password = user.username.is_some() || user.password.is_some();
        if has_password && user.token.is_some() {
            let field = entry.field("token", above.token.is_some());
            self.fail(&field, "cannot be set together with a username or a password");
        }
        // A token or a password takes precedence over a plugin, so that one set as an override is used.
        match (&user.token, &user.token_file) {
            (Some(token), None) => Credentials::Token(token.clone()),
            (Some(token), Some(path)) => Credentials::TokenFile { path: path.clone(), initial: token.clone() },
            (None, Some(path)) => self.token_file(&entry.field("tokenFile", above.token_file.is_some()), path),
            (None, None) if has_password => Credentials::Basic {
                username: user.username.clone().unwrap_or_default(),
                password: user.password.clone().unwrap_or_default(),
            },
            (None, None) => plugin
                // A certificate takes precedence as well, as in client-go, because the plugin might return another one.
                .filter(|_| user.client_certificate.is_none() && user.client_certificate_data.is_none())
                .map(|plugin| Credentials::Exec(Box::new(plugin)))
                .or(provider.map(|provider| Credentials::AuthProvider(Box::new(provider))))
                .unwrap_or_default(),
        }
    }

    fn token_file(&mut self, field: &Field, path: &Path) -> Credentials {
        let Some(bytes) = self.read(field, path) else { return Credentials::Anonymous };
        let token = String::from_utf8(bytes).unwrap_or_default().trim().to_owned();
        if token.is_empty() {
            self.fail(field, format!("{} contains no token", path.display()));
        }
        Credentials::TokenFile { path: path.to_owned(), initial: Secret::new(token) }
    }

    fn exec(&mut self, exec: &ExecConfig, overridden: bool, entry: &Entry) -> Option<ExecPlugin> {
        let problems = self.problems.len();
        if exec.command.as_os_str().is_empty() {
            self.fail(&entry.field("exec.command", overridden), "is required");
        }
        let field = entry.field("exec.apiVersion", overridden);
        let api_version = self.keep(
            &field,
            match exec.api_version.as_deref() {
                None => Err("is required".to_owned()),
                Some(name) => ExecApiVersion::from_name(name).ok_or_else(|| {
                    let (v1, beta) = (ExecApiVersion::V1.as_str(), ExecApiVersion::V1Beta1.as_str());
                    format!("{name:?} is not supported: expected {v1} or {beta}")
                }),
            },
        );
        for (i, _) in exec.env.iter().enumerate().filter(|(_, variable)| variable.name.is_empty()) {
            self.fail(&entry.field(&format!("exec.env[{i}].name"), overridden), "is required");
        }
        let field = entry.field("exec.interactiveMode", overridden);
        let interactive_mode = match (exec.interactive_mode.as_deref(), api_version) {
            (Some(name), _) => {
                let unknown = || format!("{name:?} is invalid: expected Never, IfAvailable or Always");
                self.keep(&field, InteractiveMode::from_name(name).ok_or_else(unknown))
            }
            // Version v1beta1 has plugins that predate the field.
            (None, Some(ExecApiVersion::V1Beta1)) => Some(InteractiveMode::IfAvailable),
            (None, Some(ExecApiVersion::V1)) => self.keep(&field, Err("is required: Never, IfAvailable or Always")),
            (None, None) => None,
        };
        let plugin = ExecPlugin {
            args: exec.args.clone(),
            env: exec.env.clone(),
            install_hint: exec.install_hint.as_deref().map(safe_for_terminal),
            provide_cluster_info: exec.provide_cluster_info,
            interactive_mode: interactive_mode?,
            ..ExecPlugin::new(&exec.command, api_version?)
        };
        (self.problems.len() == problems).then_some(plugin)
    }

    fn provider(&mut self, config: &AuthProviderConfig, overridden: bool, entry: &Entry) -> Option<AuthProvider> {
        let field = entry.field("auth-provider", overridden);
        match config.name.as_str() {
            "oidc" => {
                for setting in ["idp-issuer-url", "client-id"] {
                    if config.config.get(setting).is_none_or(String::is_empty) {
                        let field = entry.field(&format!("auth-provider.config.{setting}"), overridden);
                        self.fail(&field, "is required");
                    }
                }
            }
            "" => self.fail(&entry.field("auth-provider.name", overridden), "is required"),
            other => self.fail(&field, why_not(other)),
        }
        let origin = entry.file.as_deref().filter(|_| !overridden).zip(entry.name.clone());
        Some(AuthProvider { config: config.clone(), origin: origin.map(|(file, user)| (file.to_owned(), user)) })
    }
}
