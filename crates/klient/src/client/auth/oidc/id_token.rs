//! The expiry of an id token. Only the server checks its signature.

use std::time::{Duration, SystemTime};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

/// Returns the `exp` claim of a token, or the reason why there is none. The reason does not contain the token.
pub(super) fn expiry(token: &str) -> Result<SystemTime, &'static str> {
    let [_, claims, _] = token.split('.').collect::<Vec<_>>()[..] else { return Err("it does not have three parts") };
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).map_err(|_| "its claims are not base64")?;
    let claims: Value = serde_json::from_slice(&claims).map_err(|_| "its claims are not JSON")?;
    // Some issuers write a fractional number.
    let seconds = claims.get("exp").and_then(Value::as_f64).ok_or("it has no numeric exp claim")?;
    let lifetime = Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|_| "its exp claim is out of range")?;
    SystemTime::UNIX_EPOCH.checked_add(lifetime).ok_or("its exp claim is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expiry_is_read_from_the_exp_claim() {
        let token = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        let at = |seconds| Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(expiry(&token("{\"exp\": 1767225600}")), at(1_767_225_600));
        assert_eq!(expiry(&token("{\"exp\": 1767225600.0, \"sub\": \"joe\"}")), at(1_767_225_600));
        assert_eq!(expiry(&token("{\"exp\": -5}")), at(0));
        for (token, why) in [
            ("abc".to_owned(), "three parts"),
            ("a.%.c".to_owned(), "base64"),
            (token("no"), "JSON"),
            (token("{}"), "no numeric exp claim"),
            (token("{\"exp\": \"soon\"}"), "no numeric exp claim"),
            (token("{\"exp\": 1e300}"), "out of range"),
        ] {
            assert!(expiry(&token).unwrap_err().contains(why), "{token}");
        }
    }
}
