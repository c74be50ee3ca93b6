//! From an object and a write to the new owners of its fields.

use std::collections::BTreeMap;

use super::{
    element::Path,
    problem::Problems,
    set::FieldSet,
    typed::{Comparison, Typed},
};

/// The fields that each field manager owns, by identifier of the manager.
#[doc(alias("fieldpath.ManagedFields"))]
pub type Managers = BTreeMap<String, ManagedSet>;

/// The fields that a field manager owns.
#[doc(alias("fieldpath.VersionedSet"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedSet {
    /// The fields.
    pub set: FieldSet,
    /// The API version in which the fields are named.
    pub version: String,
    /// Whether the manager applied them. Otherwise it wrote them by a create, update or patch.
    pub applied: bool,
}

/// A field that another manager owns and the applied configuration would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The identifier of the other manager.
    pub manager: String,
    /// The field.
    pub path: Path,
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateError {
    /// Other managers own some of the fields.
    Conflicts(Vec<Conflict>),
    /// An object does not fit its schema, or cannot be converted.
    Invalid(String),
}

/// Why an object could not be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The version is not served any more. Managers of that version lose their fields.
    MissingVersion,
    /// The conversion failed.
    Failed(String),
}

/// Conversion of objects between versions.
pub trait Converter {
    /// Returns an object in another version.
    ///
    /// # Errors
    ///
    /// Returns an error if the version does not exist, or if the object cannot be converted.
    fn convert(&self, object: &Typed, version: &str) -> Result<Typed, ConvertError>;
}

/// Computes merged objects and the owners of their fields.
#[doc(alias("merge.Updater"))]
#[derive(Debug)]
pub struct Updater<'a, C> {
    /// The conversion between versions.
    pub converter: &'a C,
    /// The fields that a write does not change, by version. No manager comes to own them.
    pub ignored: &'a BTreeMap<String, FieldSet>,
}

impl UpdateError {
    /// Adds what failed to the reason of an error.
    fn within(self, what: &str) -> Self {
        match self {
            Self::Invalid(why) => Self::Invalid(format!("{what}: {why}")),
            conflicts @ Self::Conflicts(_) => conflicts,
        }
    }
}

impl From<Problems> for UpdateError {
    fn from(problems: Problems) -> Self {
        Self::Invalid(problems.to_string())
    }
}

impl<C: Converter> Updater<'_, C> {
    /// Returns the owners of fields after a create, update or patch.
    ///
    /// # Errors
    ///
    /// Returns an error if an object does not fit its schema, or cannot be converted.
    pub fn update(
        &self,
        live: &Typed,
        new: &Typed,
        version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, UpdateError> {
        let managers = self.reconcile(live, managers)?;
        let (mut managers, changes) = self.take_over(live, new, version, managers, manager, true)?;
        let own = managers.remove(manager).map(|own| own.set).unwrap_or_default();
        let own = own.difference(&changes.removed).union(&changes.modified).union(&changes.added);
        let set = self.without_ignored(own, version);
        if !set.is_empty() {
            managers.insert(manager.to_owned(), ManagedSet { set, version: version.to_owned(), applied: false });
        }
        Ok(managers)
    }

    /// Merges an applied configuration into an object. Returns the merged object, or nothing if it did not change, and the owners of
    /// fields.
    ///
    /// # Errors
    ///
    /// Returns an error if other managers own fields that would change, unless `force` is set, or if an object does not fit its schema.
    pub fn apply(
        &self,
        live: &Typed,
        config: &Typed,
        version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Option<Typed>, Managers), UpdateError> {
        let mut managers = self.reconcile(live, managers)?;
        let failed = |what: &str, why: &Problems| UpdateError::Invalid(format!("failed to {what}: {why}"));
        let merged = live.merge(config).map_err(|why| failed("merge config", &why))?;
        let set = config.to_field_set().map_err(|why| failed("get field set", &why))?;
        let set = self.without_ignored(set, version);
        let last = managers.insert(manager.to_owned(), ManagedSet { set, version: version.to_owned(), applied: true });
        let new = match last {
            Some(last) if !last.set.is_empty() => {
                self.prune(&merged, &managers, version, &last).map_err(|why| why.within("failed to prune fields"))?
            }
            _ => merged,
        };
        let (managers, _) = self.take_over(live, &new, version, managers, manager, force)?;
        Ok(((!live.equals(&new)).then_some(new), managers))
    }

    /// Takes changed fields from all managers but one. Returns the change, too.
    fn take_over(
        &self,
        old: &Typed,
        new: &Typed,
        version: &str,
        mut managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<(Managers, Comparison), UpdateError> {
        let mut changes: BTreeMap<String, Comparison> = BTreeMap::new();
        changes.insert(version.to_owned(), self.changes(old, new, version)?);
        let mut conflicts: BTreeMap<String, FieldSet> = BTreeMap::new();
        let mut missing = Vec::new();
        for (other, owned) in managers.iter().filter(|(other, _)| other.as_str() != manager) {
            if !changes.contains_key(&owned.version) {
                let convert = |object: &Typed, which: &str| match self.converter.convert(object, &owned.version) {
                    Ok(object) => Ok(Some(object)),
                    Err(ConvertError::MissingVersion) => Ok(None),
                    Err(ConvertError::Failed(why)) => {
                        Err(UpdateError::Invalid(format!("failed to convert {which} object: {why}")))
                    }
                };
                let (Some(old), Some(new)) = (convert(old, "old")?, convert(new, "new")?) else {
                    missing.push(other.clone());
                    continue;
                };
                changes.insert(owned.version.clone(), self.changes(&old, &new, &owned.version)?);
            }
            let change = &changes[&owned.version];
            let conflict = owned.set.intersection(&change.modified.union(&change.added));
            if !conflict.is_empty() {
                conflicts.insert(other.clone(), conflict);
            }
        }
        for other in missing {
            managers.remove(&other);
        }
        if !force && !conflicts.is_empty() {
            let of_manager = |(manager, set): (String, FieldSet)| {
                set.paths().into_iter().map(move |path| Conflict { manager: manager.clone(), path })
            };
            return Err(UpdateError::Conflicts(conflicts.into_iter().flat_map(of_manager).collect()));
        }
        for (other, owned) in managers.iter_mut().filter(|(other, _)| other.as_str() != manager) {
            if let Some(conflict) = conflicts.get(other) {
                owned.set = owned.set.difference(conflict);
            }
            let removed = &changes[&owned.version].removed;
            if !removed.is_empty() {
                owned.set = owned.set.difference(removed);
            }
        }
        managers.retain(|_, owned| !owned.set.is_empty());
        let change = changes.remove(version).unwrap_or_default();
        Ok((managers, change))
    }

    /// Returns the difference of two objects without ignored fields.
    fn changes(&self, old: &Typed, new: &Typed, version: &str) -> Result<Comparison, UpdateError> {
        let changes =
            old.compare(new).map_err(|why| UpdateError::Invalid(format!("failed to compare objects: {why}")))?;
        Ok(match self.ignored.get(version) {
            Some(ignored) => changes.without(ignored),
            None => changes,
        })
    }

    fn without_ignored(&self, set: FieldSet, version: &str) -> FieldSet {
        match self.ignored.get(version) {
            Some(ignored) => set.recursive_difference(ignored),
            None => set,
        }
    }

    /// Removes what the manager applied last time and does not apply now, unless another manager owns it.
    fn prune(
        &self,
        merged: &Typed,
        managers: &Managers,
        version: &str,
        last: &ManagedSet,
    ) -> Result<Typed, UpdateError> {
        let Some(converted) = self.convert(merged, &last.version, "merged object to last applied version")? else {
            return Ok(merged.clone());
        };
        let pruned = converted.remove_items(&converted.with_declared_parents(&last.set));
        let pruned = self
            .add_back_owned(&converted, pruned, &last.version, managers)
            .map_err(|why| why.within("failed add back owned items"))?;
        let pruned = self
            .add_back_dangling(&converted, &pruned, last)
            .map_err(|why| why.within("failed add back dangling items"))?;
        self.converter.convert(&pruned, version).map_err(|error| match error {
            ConvertError::MissingVersion => UpdateError::Invalid(format!("version {version} is not served")),
            ConvertError::Failed(why) => UpdateError::Invalid(why),
        })
    }

    /// Adds back what managers own, the applying one with its new configuration included.
    fn add_back_owned(
        &self,
        merged: &Typed,
        pruned: Typed,
        pruned_version: &str,
        managers: &Managers,
    ) -> Result<Typed, UpdateError> {
        let mut owned: BTreeMap<&str, FieldSet> = BTreeMap::new();
        for managed in managers.values() {
            let set = owned.entry(&managed.version).or_default();
            *set = set.union(&managed.set);
        }
        // The version of the objects comes first: others may need fields of it for the conversion.
        let first = owned.remove_entry(pruned_version);
        let (mut merged, mut pruned) = (merged.clone(), pruned);
        for (version, owned) in first.into_iter().chain(owned) {
            let Some(converted) = self.convert(&merged, version, &format!("merged object at version {version}"))?
            else {
                continue;
            };
            merged = converted;
            let Some(converted) = self.convert(&pruned, version, &format!("pruned object at version {version}"))?
            else {
                continue;
            };
            pruned = converted;
            let all = merged.with_declared_parents(&merged.to_field_set()?);
            let kept = merged.with_declared_parents(&pruned.to_field_set()?);
            let owned = merged.with_declared_parents(&owned);
            pruned = merged.remove_items(&all.difference(&kept.union(&owned)));
        }
        Ok(pruned)
    }

    /// Adds back what the applying manager did not own.
    fn add_back_dangling(&self, merged: &Typed, pruned: &Typed, last: &ManagedSet) -> Result<Typed, UpdateError> {
        let Some(pruned) = self.convert(pruned, &last.version, "pruned object to last applied version")? else {
            return Ok(merged.clone());
        };
        let kept = merged.with_declared_parents(&pruned.to_field_set()?);
        let all = merged.with_declared_parents(&merged.to_field_set()?);
        let last = merged.with_declared_parents(&last.set);
        Ok(merged.remove_items(&all.difference(&kept).intersection(&last)))
    }

    /// Returns an object in another version, or nothing if that version is not served.
    fn convert(&self, object: &Typed, version: &str, what: &str) -> Result<Option<Typed>, UpdateError> {
        match self.converter.convert(object, version) {
            Ok(object) => Ok(Some(object)),
            Err(ConvertError::MissingVersion) => Ok(None),
            Err(ConvertError::Failed(why)) => Err(UpdateError::Invalid(format!("failed to convert {what}: {why}"))),
        }
    }

    /// Brings field sets to the current schema. Managers of versions that are not served any more are dropped.
    fn reconcile(&self, live: &Typed, managers: Managers) -> Result<Managers, UpdateError> {
        let mut out = Managers::new();
        for (manager, mut owned) in managers {
            let live = match self.converter.convert(live, &owned.version) {
                Ok(live) => live,
                Err(ConvertError::MissingVersion) => continue,
                Err(ConvertError::Failed(why)) => return Err(UpdateError::Invalid(why)),
            };
            let reconciled = live
                .reconcile(&owned.set)
                .map_err(|why| UpdateError::Invalid(format!("errors reconciling field set with schema: {why}")))?;
            if let Some(set) = reconciled {
                owned.set = set;
            }
            out.insert(manager, owned);
        }
        Ok(out)
    }
}
