//! The tokens of service accounts: their claims, and what makes them invalid.
//!
//! A token is valid while its service account and the object that it is bound to exist with the same UIDs. The key is generated when it
//! is needed first. A server with a folder stores the key there, so that tokens outlive the process.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use ring::digest;
use serde_json::{Value, json};

use super::{
    User,
    attributes::quoted_list,
    impersonation::NODE_NAME,
    jwt::{self, Claims, Named, SigningKey},
};
use crate::{
    metadata,
    store::{Store, Stored},
};

/// The issuer of tokens.
pub(crate) struct Issuer {
    /// The URL by which tokens name the issuer. It is the default audience, too.
    pub(crate) url: String,
    folder: Option<PathBuf>,
    key: OnceLock<Option<SigningKey>>,
    /// Claims by the digest of their tokens, whose signatures were verified.
    verified: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

/// A valid token.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) user: Arc<User>,
    /// The requested audiences that the token has.
    pub(crate) audiences: Vec<String>,
}

/// The objects of a new token.
pub(crate) struct Bound<'a> {
    pub(crate) account: &'a Value,
    pub(crate) pod: Option<&'a Value>,
    pub(crate) secret: Option<&'a Value>,
    pub(crate) node: Option<&'a Value>,
}

impl Issuer {
    pub(crate) fn new(url: Option<String>, folder: Option<&Path>) -> Self {
        Self {
            url: url.unwrap_or_else(|| ISSUER.to_owned()),
            folder: folder.map(Path::to_owned),
            key: OnceLock::new(),
            verified: Mutex::default(),
        }
    }

    /// Returns the key, if there are random numbers to generate one.
    fn key(&self) -> Option<&SigningKey> {
        let init = || {
            let file = self.folder.as_ref().map(|folder| folder.join(KEY_FILE));
            let stored = file.as_ref().and_then(|file| std::fs::read(file).ok());
            if let Some(key) = stored.and_then(|document| SigningKey::read(&document)) {
                return Some(key);
            }
            let (key, document) = SigningKey::generate()?;
            if let Some(file) = file
                && let Err(error) = write_private(&file, &document)
            {
                tracing::warn!(%error, "cannot store the key of service account tokens");
            }
            Some(key)
        };
        self.key.get_or_init(init).as_ref()
    }

    /// Returns the public keys, by which others verify tokens.
    pub(crate) fn keys(&self) -> Value {
        json!({"keys": self.key().map(SigningKey::public).into_iter().collect::<Vec<_>>()})
    }

    /// Returns a token for a service account that expires after some seconds, or an error message.
    pub(crate) fn issue(
        &self,
        id: &str,
        bound: &Bound<'_>,
        audiences: &[String],
        (now, seconds, warn_after): (i64, i64, Option<i64>),
    ) -> Result<String, String> {
        let named = |object: &Value| {
            let mut named = json!({"name": metadata::text(object, "name")});
            let uid = metadata::text(object, "uid");
            if !uid.is_empty() {
                named["uid"] = json!(uid);
            }
            named
        };
        let (namespace, name) = (metadata::text(bound.account, "namespace"), metadata::text(bound.account, "name"));
        let mut private = json!({"namespace": namespace, "serviceaccount": named(bound.account)});
        for (key, object) in [("pod", bound.pod), ("secret", bound.secret), ("node", bound.node)] {
            if let Some(object) = object {
                private[key] = named(object);
            }
        }
        if let Some(after) = warn_after {
            private["warnafter"] = json!(now + after);
        }
        let claims = json!({
            "iss": self.url, "sub": User::service_account(namespace, name).name, "aud": audiences, "jti": id,
            "iat": now, "nbf": now, "exp": now.saturating_add(seconds), "kubernetes.io": private,
        });
        let key = self.key().ok_or("no random numbers")?;
        key.sign(&claims).ok_or_else(|| "signing failed".to_owned())
    }

    /// Reviews a token. Returns `None` for a token of another issuer, and a message for one that is not valid.
    pub(crate) fn review(
        &self,
        store: &Store,
        token: &str,
        wanted: &[String],
        now: jiff::Timestamp,
    ) -> Option<Result<Accepted, String>> {
        if token.len() > MAX_TOKEN || jwt::claimed_issuer(token)? != self.url {
            return None;
        }
        Some(self.accept(store, token, wanted, now))
    }

    fn accept(&self, store: &Store, token: &str, wanted: &[String], now: jiff::Timestamp) -> Result<Accepted, String> {
        let claims = self.verified(token)?;
        let own = [self.url.clone()];
        let given = if claims.aud.is_empty() { &own[..] } else { &claims.aud[..] };
        let audiences: Vec<String> = given.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if audiences.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted_list(given),
                quoted_list(wanted)
            ));
        }
        check_times(&claims, now)?;
        let user = user_of(store, &claims, now)?;
        Ok(Accepted { user: user.authenticated(), audiences })
    }

    /// Verifies the signature, unless that was done before.
    fn verified(&self, token: &str) -> Result<Arc<Claims>, String> {
        let mut digest_of_token = [0; 32];
        digest_of_token.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
        let known = self.verified.lock().unwrap_or_else(PoisonError::into_inner).get(&digest_of_token).cloned();
        if let Some(claims) = known {
            return Ok(claims);
        }
        let key = self.key().ok_or("invalid signature, no keys found")?;
        let claims = Arc::new(key.verify(token)?);
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(digest_of_token, Arc::clone(&claims));
        Ok(claims)
    }
}

/// Checks the times of a token. The clocks of two machines may differ by a minute.
fn check_times(claims: &Claims, now: jiff::Timestamp) -> Result<(), String> {
    let now = now.as_second() as f64;
    let problem = if claims.nbf.is_some_and(|from| now + LEEWAY < from) {
        "is not valid yet"
    } else if claims.exp.is_some_and(|until| now - LEEWAY > until) {
        "has expired"
    } else if claims.iat.is_some_and(|at| now + LEEWAY < at) {
        "is issued in the future"
    } else {
        return Ok(());
    };
    Err(format!("service account token {problem}"))
}

/// Returns the user of claims, if the service account and the bound object still exist.
fn user_of(store: &Store, claims: &Claims, now: jiff::Timestamp) -> Result<User, String> {
    let private = &claims.kubernetes;
    let (namespace, account) = (private.namespace.as_str(), &private.serviceaccount);
    let key = |named: &Named| format!("{namespace}/{}", named.name);
    let is_deleted = |stored: &Stored| {
        let at = stored.raw().deletion_timestamp();
        at.is_some_and(|at| now.duration_since(at).as_secs_f64() > LEEWAY)
    };
    let missing = || format!("serviceaccounts \"{}\" not found", account.name);
    let found = store.get("serviceaccounts", &key(account)).ok_or_else(missing)?;
    let uid = found.raw().uid().unwrap_or_default();
    if uid != account.uid {
        return Err(format!("service account UID ({uid}) does not match claim ({})", account.uid));
    }
    if is_deleted(&found) {
        return Err(format!("service account {namespace}/{} has been deleted", account.name));
    }
    let check = |table: &str, key: &str, named: &Named, (kind, claim): (&str, &str)| {
        let invalidated = || "service account token has been invalidated".to_owned();
        let found = store.get(table, key).ok_or_else(invalidated)?;
        let uid = found.raw().uid().unwrap_or_default();
        if uid != named.uid {
            return Err(format!("{kind} UID ({uid}) does not match service account {claim} ref claim ({})", named.uid));
        }
        if is_deleted(&found) { Err(invalidated()) } else { Ok(()) }
    };
    let mut user = User::service_account(namespace, &account.name).uid(&account.uid);
    if let Some(secret) = &private.secret {
        check("secrets", &key(secret), secret, ("secret", "secret"))?;
    }
    if let Some(pod) = &private.pod {
        check("pods", &key(pod), pod, ("pod", "pod"))?;
        user = user.extra("authentication.kubernetes.io/pod-name", &pod.name);
        user = user.extra("authentication.kubernetes.io/pod-uid", &pod.uid);
    }
    if let Some(node) = &private.node {
        if private.pod.is_none() {
            check("nodes", &node.name, node, ("node", "node"))?;
        }
        user = user.extra(NODE_NAME, &node.name);
        if !node.uid.is_empty() {
            user = user.extra("authentication.kubernetes.io/node-uid", &node.uid);
        }
    }
    if !claims.jti.is_empty() {
        user = user.extra("authentication.kubernetes.io/credential-id", format!("JTI={}", claims.jti));
    }
    Ok(user)
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

/// The issuer of most clusters.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const KEY_FILE: &str = "service-account.key";
/// The longest token that is looked at.
const MAX_TOKEN: usize = 64 << 10;
const MAX_VERIFIED: usize = 1000;
/// The difference in seconds between the clocks of two machines that is tolerated.
const LEEWAY: f64 = 60.0;
