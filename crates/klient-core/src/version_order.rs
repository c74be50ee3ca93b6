//! The order of API version names: `v2` before `v1`, and stable before beta before alpha.
//!
//! This is the order in which a server prefers the versions of a group, and in which a custom resource definition
//! prints its versions. In client-go: `version.CompareKubeAwareVersionStrings`.

use std::cmp::{Ordering, Reverse};

/// Compares two API version names. The greater one is preferred.
///
/// Stable is preferred to beta, beta to alpha, and then the higher number. Names of another form come last, in
/// alphabetical order.
///
/// ```
/// use klient_core::compare_versions;
///
/// let mut versions = ["v1alpha1", "v1", "foo10", "v10", "v2beta3", "v2beta10"];
/// versions.sort_by(|a, b| compare_versions(b, a));
/// assert_eq!(versions, ["v10", "v1", "v2beta10", "v2beta3", "v1alpha1", "foo10"]);
/// ```
#[doc(alias = "CompareKubeAwareVersionStrings")]
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (KubeVersion::parse(a), KubeVersion::parse(b)) {
        // Equal numbers can have different texts (`v01`), which decide then, so that the order is total.
        (Some(left), Some(right)) => left.cmp(&right).then_with(|| Reverse(a).cmp(&Reverse(b))),
        (None, None) => Reverse(a).cmp(&Reverse(b)),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

/// `v<major>`, `v<major>alpha<minor>` or `v<major>beta<minor>`, ordered by preference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KubeVersion {
    stability: Stability,
    major: u64,
    minor: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

impl KubeVersion {
    fn parse(text: &str) -> Option<Self> {
        let (major, rest) = leading_number(text.strip_prefix('v')?)?;
        let (stability, minor) = if rest.is_empty() {
            (Stability::Stable, "0")
        } else if let Some(minor) = rest.strip_prefix("alpha") {
            (Stability::Alpha, minor)
        } else {
            (Stability::Beta, rest.strip_prefix("beta")?)
        };
        let (minor, rest) = leading_number(minor)?;
        rest.is_empty().then_some(Self { stability, major, minor })
    }
}

/// Splits off the leading digits. Returns `None` if there are none, or if the number does not fit.
fn leading_number(text: &str) -> Option<(u64, &str)> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(len);
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stable_is_preferred_to_beta_and_beta_to_alpha() {
        let preferred = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "bar",
            "foo1",
            "foo10",
            "v",
            "v1alpha",
            "v1gamma1",
            "v1x",
        ];
        for (position, better) in preferred.iter().enumerate() {
            assert_eq!(compare_versions(better, better), Ordering::Equal);
            for worse in &preferred[position + 1..] {
                assert_eq!(compare_versions(better, worse), Ordering::Greater, "{better} against {worse}");
                assert_eq!(compare_versions(worse, better), Ordering::Less, "{worse} against {better}");
            }
        }
    }

    #[test]
    fn number_out_of_range_is_not_a_kube_version() {
        assert_eq!(compare_versions("v99999999999999999999999", "v1alpha1"), Ordering::Less);
    }

    proptest! {
        #[test]
        fn order_is_total_and_never_panics(a in "(v[0-9]{1,3}((alpha|beta)[0-9]{0,3})?|.{0,6})", b in "(v[0-9]{1,3}((alpha|beta)[0-9]{0,3})?|.{0,6})") {
            prop_assert_eq!(compare_versions(&a, &b), compare_versions(&b, &a).reverse());
            prop_assert_eq!(compare_versions(&a, &b) == Ordering::Equal, a == b);
        }
    }
}
