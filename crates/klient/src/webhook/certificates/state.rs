//! The state of certificates, as a Secret stores it.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use k8s_openapi::{ByteString, api::core::v1::Secret};
use klient_core::ResourceExt as _;

use super::Pair;

/// The state of certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::webhook) struct State {
    /// The authorities that registrations must trust, as PEM.
    pub(in crate::webhook) bundle: String,
    /// The pair that is served. Its authority is in the bundle.
    pub(in crate::webhook) current: Pair,
    /// The pair that is served next, if a renewal has begun.
    pub(in crate::webhook) next: Option<Pair>,
    /// When the state changed.
    pub(in crate::webhook) since: SystemTime,
}

impl State {
    /// Reads a Secret. Returns why it has no state, if so.
    pub(in crate::webhook) fn read(secret: &Secret) -> Result<Self, String> {
        let data = secret.data.as_ref().ok_or("the Secret has no data")?;
        let text = |name: &str| match data.get(name) {
            Some(ByteString(bytes)) => {
                String::from_utf8(bytes.clone()).map_err(|_| format!("{name} of the Secret is not a text"))
            }
            None => Err(format!("the Secret has no {name}")),
        };
        let pair = |certificate: &str, key: &str, authority: &str| -> Result<Pair, String> {
            Ok(Pair { authority: text(authority)?, certificate: text(certificate)?, key: text(key)? })
        };
        let current = pair("tls.crt", "tls.key", "authority.crt")?;
        let next = match data.contains_key("next.crt") {
            true => Some(pair("next.crt", "next.key", "next-authority.crt")?),
            false => None,
        };
        let since = secret.annotations().get(SINCE).and_then(|text| text.parse::<u64>().ok());
        // Without a time, the next step waits for as long as possible from now on.
        let since = since.map_or_else(SystemTime::now, |seconds| UNIX_EPOCH + Duration::from_secs(seconds));
        Ok(Self { bundle: text("ca.crt")?, current, next, since })
    }

    /// Writes the state into a Secret, whose name and resource version stay.
    pub(in crate::webhook) fn write(&self, secret: &mut Secret) {
        let mut data = BTreeMap::new();
        let mut set = |name: &str, text: &str| drop(data.insert(name.to_owned(), ByteString(text.as_bytes().to_vec())));
        set("ca.crt", &self.bundle);
        set("tls.crt", &self.current.certificate);
        set("tls.key", &self.current.key);
        set("authority.crt", &self.current.authority);
        if let Some(next) = &self.next {
            set("next.crt", &next.certificate);
            set("next.key", &next.key);
            set("next-authority.crt", &next.authority);
        }
        secret.data = Some(data);
        secret.string_data = None;
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        secret.metadata.annotations.get_or_insert_default().insert(SINCE.to_owned(), since.to_string());
    }
}

/// The annotation with the time of the last step.
const SINCE: &str = "webhook.klient/certificates-since";
