//! The order of fields in documents that are not objects of a kind: statuses, tables, metadata and discovery.

use klient_proto::{Codec, descriptor::Type};

use super::{Inner, Layout, Lazy, Place};

/// The fields of a document, and the fields of their values.
pub(super) type Fields = &'static [(&'static str, Is)];

/// The layout of a field's value.
#[derive(Clone, Copy)]
pub(super) enum Is {
    Plain,
    /// An object, or a list of objects.
    Object(Fields),
    /// The metadata of an object.
    Metadata,
    /// An object that has a kind of its own.
    ByKind,
}

use Is::{ByKind, Metadata, Object, Plain};

/// Kind and version of documents, and their fields after `kind` and `apiVersion`.
pub(super) const DOCUMENTS: &[(&str, &str, Fields)] = &[
    ("Status", "v1", STATUS),
    ("Table", "meta.k8s.io/v1", TABLE),
    ("PartialObjectMetadata", "meta.k8s.io/v1", &[("metadata", Metadata)]),
    ("PartialObjectMetadataList", "meta.k8s.io/v1", &[("metadata", Object(LIST_METADATA)), ("items", ByKind)]),
    // The oldest documents have no version.
    ("APIVersions", "", &[("versions", Plain), ("serverAddressByClientCIDRs", Object(ADDRESS))]),
    ("APIResourceList", "", RESOURCES),
    ("APIResourceList", "v1", RESOURCES),
    ("APIGroup", "v1", GROUP),
    ("APIGroupList", "v1", &[("groups", Object(GROUP))]),
    ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2", &[("metadata", Plain), ("items", Object(DISCOVERED))]),
];

/// The metadata of lists.
pub(super) const LIST_METADATA: Fields =
    &[("selfLink", Plain), ("resourceVersion", Plain), ("continue", Plain), ("remainingItemCount", Plain)];

const STATUS: Fields = &[
    ("metadata", Object(LIST_METADATA)),
    ("status", Plain),
    ("message", Plain),
    ("reason", Plain),
    ("details", Object(DETAILS)),
    ("code", Plain),
];
const DETAILS: Fields = &[
    ("name", Plain),
    ("group", Plain),
    ("kind", Plain),
    ("uid", Plain),
    ("causes", Object(&[("reason", Plain), ("message", Plain), ("field", Plain)])),
    ("retryAfterSeconds", Plain),
];
const TABLE: Fields =
    &[("metadata", Object(LIST_METADATA)), ("columnDefinitions", Object(COLUMN)), ("rows", Object(ROW))];
const COLUMN: Fields =
    &[("name", Plain), ("type", Plain), ("format", Plain), ("description", Plain), ("priority", Plain)];
const ROW: Fields = &[("cells", Plain), ("conditions", Object(CONDITION)), ("object", ByKind)];
const CONDITION: Fields = &[("type", Plain), ("status", Plain), ("reason", Plain), ("message", Plain)];
const ADDRESS: Fields = &[("clientCIDR", Plain), ("serverAddress", Plain)];
const RESOURCES: Fields = &[
    ("groupVersion", Plain),
    (
        "resources",
        Object(&[
            ("name", Plain),
            ("singularName", Plain),
            ("namespaced", Plain),
            ("group", Plain),
            ("version", Plain),
            ("kind", Plain),
            ("verbs", Plain),
            ("shortNames", Plain),
            ("categories", Plain),
            ("storageVersionHash", Plain),
        ]),
    ),
];
const GROUP: Fields = &[
    ("name", Plain),
    ("versions", Object(GROUP_VERSION)),
    ("preferredVersion", Object(GROUP_VERSION)),
    ("serverAddressByClientCIDRs", Object(ADDRESS)),
];
const GROUP_VERSION: Fields = &[("groupVersion", Plain), ("version", Plain)];
const DISCOVERED: Fields = &[("metadata", Metadata), ("versions", Object(DISCOVERED_VERSION))];
const DISCOVERED_VERSION: Fields =
    &[("version", Plain), ("resources", Object(DISCOVERED_RESOURCE)), ("freshness", Plain)];
const DISCOVERED_RESOURCE: Fields = &[
    ("resource", Plain),
    ("responseKind", Object(KIND)),
    ("scope", Plain),
    ("singularResource", Plain),
    ("verbs", Plain),
    ("shortNames", Plain),
    ("categories", Plain),
    (
        "subresources",
        Object(&[
            ("subresource", Plain),
            ("responseKind", Object(KIND)),
            ("acceptedTypes", Object(KIND)),
            ("verbs", Plain),
        ]),
    ),
];
const KIND: Fields = &[("group", Plain), ("version", Plain), ("kind", Plain)];

/// Returns the fields of a document.
pub(super) fn places(fields: Fields) -> impl Iterator<Item = Place> {
    fields.iter().map(|(name, is)| Place { name, inner: inner_of(*is) })
}

/// Returns the layout of an object inside of a document.
pub(super) fn inner(fields: Fields) -> Inner {
    Inner::Fixed(Box::new(Layout::new(places(fields).collect())))
}

fn inner_of(is: Is) -> Inner {
    match is {
        Plain => Inner::Plain,
        ByKind => Inner::ByKind,
        Object(fields) => inner(fields),
        // All kinds have the same metadata.
        Metadata => Codec::find("v1", "ConfigMap").and_then(metadata_of).map_or(Inner::Plain, Inner::Message),
    }
}

fn metadata_of(codec: &'static Codec) -> Option<Lazy> {
    (codec.descriptor)().fields.iter().find_map(|field| match field.ty {
        Type::Message(descriptor) if field.name == "metadata" => Some(Lazy::new(descriptor)),
        _ => None,
    })
}
