//! Lists of the indexes of a job's pods, such as `1,3-5`.

/// Returns the number of indexes in a list, all of which are below `completions`.
///
/// # Errors
///
/// Returns why the list is invalid.
pub(super) fn count(list: &str, completions: i64) -> Result<i64, String> {
    if list.is_empty() {
        return Ok(0);
    }
    let (mut total, mut last) = (0, None);
    for part in list.split(',') {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// Returns the first index that two lists share.
pub(super) fn overlap(one: &str, other: &str, completions: i64) -> Option<i64> {
    let all = |list: &str| -> Vec<(i64, i64)> {
        list.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    if one.is_empty() || other.is_empty() {
        return None;
    }
    let others = all(other);
    let shared = |(first, end): &(i64, i64)| {
        others.iter().find(|(from, to)| first <= to && from <= end).map(|(from, _)| (*from).max(*first))
    };
    all(one).iter().find_map(shared)
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let ends: Vec<&str> = part.split('-').collect();
    let number = |text: &str| {
        let number: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if number >= completions { Err(format!("too large index: {text:?}")) } else { Ok(number) }
    };
    match ends.as_slice() {
        [only] => number(only).map(|number| (number, number)),
        [first, last] => {
            let (first, last) = (number(first)?, number(last)?);
            match first < last {
                true => Ok((first, last)),
                false => Err(format!("non-increasing order, previous: {first}, current: {last}")),
            }
        }
        _ => Err(format!(
            "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
        )),
    }
}
