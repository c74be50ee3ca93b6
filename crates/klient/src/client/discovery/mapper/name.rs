//! The names of resources that users write: `po`, `deployments.apps`, `deployments.v1.apps`, `Deployment`.

/// One interpretation of a name, before discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The plural, singular, short name or kind, in lower case.
    pub(super) resource: String,
    pub(super) group: Option<String>,
    pub(super) version: Option<String>,
}

/// Returns all interpretations of a name, the most likely first.
pub(super) fn readings(name: &str) -> Vec<Reading> {
    let name = name.trim();
    let mut parts = name.splitn(3, '.');
    let resource = parts.next().unwrap_or_default().to_lowercase();
    let reading = |group: &str, version: Option<&str>| Reading {
        resource: resource.clone(),
        group: (!group.is_empty()).then(|| group.to_owned()),
        version: version.map(str::to_owned),
    };
    if resource.is_empty() {
        return Vec::new();
    }
    match (parts.next(), parts.next()) {
        // `widgets.example.com` may be version `example` of group `com`, or group `example.com`.
        (Some(version), Some(group)) => {
            vec![reading(group, Some(version)), reading(&name[resource_end(name)..], None)]
        }
        (Some(group), None) => vec![reading(group, None)],
        (None, _) => vec![reading("", None)],
    }
}

fn resource_end(name: &str) -> usize {
    name.find('.').map_or(name.len(), |dot| dot + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_split_into_group_and_version() {
        let read = |name: &str| {
            let text = |part: Option<String>| part.unwrap_or_else(|| "-".to_owned());
            let show =
                |reading: Reading| format!("{} {} {}", reading.resource, text(reading.group), text(reading.version));
            readings(name).into_iter().map(show).collect::<Vec<_>>()
        };
        assert_eq!(read("po"), ["po - -"]);
        assert_eq!(read("Deployment"), ["deployment - -"]);
        assert_eq!(read("deployments.apps"), ["deployments apps -"]);
        assert_eq!(read("deployments.v1.apps"), ["deployments apps v1", "deployments v1.apps -"]);
        assert_eq!(read("widgets.example.com"), ["widgets com example", "widgets example.com -"]);
        assert_eq!(read("pods.v1."), ["pods - v1", "pods v1. -"]);
        assert_eq!(read("İ.x"), ["i̇ x -"]);
        assert!(read("").is_empty() && read(" ").is_empty() && read(".apps").is_empty());
    }
}
