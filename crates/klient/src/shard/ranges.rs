//! Slots of UIDs as ranges of hashes: the text by which an API server selects the objects of some slots.
//!
//! Kubernetes hashes a UID with 64-bit FNV-1a. A slot is one value of the highest byte, so that adjacent slots are one range.

use std::fmt::Write as _;

use crate::informer::narrow::SlotSet;

/// Returns the selector of some slots, or none if it would select everything. Without slots, there is nothing to select either.
pub(super) fn selector(slots: &SlotSet) -> Option<String> {
    if slots.is_empty() || slots.len() == SlotSet::SLOTS {
        return None;
    }
    let mut text = String::new();
    for (first, last) in runs(slots) {
        let (start, end) = (u128::from(first) << 56, (u128::from(last) + 1) << 56);
        let or = if text.is_empty() { "" } else { " || " };
        // Writing to a string does not fail. The end of the last range has 17 digits.
        let _ = write!(text, "{or}shardRange(object.metadata.uid, '{start:#018x}', '{end:#018x}')");
    }
    Some(text)
}

/// Returns the first and last slot of each run of adjacent slots.
fn runs(slots: &SlotSet) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for slot in slots.iter() {
        match runs.last_mut() {
            Some((_, last)) if u16::from(*last) + 1 == u16::from(slot) => *last = slot,
            _ => runs.push((slot, slot)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector_of(slots: &[u8]) -> Option<String> {
        selector(&slots.iter().copied().collect())
    }

    #[test]
    fn adjacent_slots_are_one_range() {
        let range = "shardRange(object.metadata.uid, '0x0000000000000000', '0x0300000000000000')";
        assert_eq!(selector_of(&[0, 1, 2]).unwrap(), range);
        let range = "shardRange(object.metadata.uid, '0x7f00000000000000', '0x8100000000000000')";
        assert_eq!(selector_of(&[127, 128]).unwrap(), range);
    }

    #[test]
    fn last_range_ends_after_the_highest_hash() {
        let ranges = "shardRange(object.metadata.uid, '0x0100000000000000', '0x0200000000000000') || \
                      shardRange(object.metadata.uid, '0xff00000000000000', '0x10000000000000000')";
        assert_eq!(selector_of(&[255, 1]).unwrap(), ranges);
    }

    #[test]
    fn all_slots_and_no_slots_need_no_selector() {
        assert_eq!(selector_of(&[]), None);
        assert_eq!(selector(&(0..=255).collect()), None);
        assert!(selector(&(1..=255).collect()).is_some());
    }

    #[test]
    fn selector_of_every_second_slot_stays_short() {
        let text = selector(&(0..128).map(|slot| slot * 2).collect()).unwrap();
        assert_eq!(text.matches("shardRange").count(), 128);
        assert!(text.len() < 11_000, "{}", text.len());
    }
}
