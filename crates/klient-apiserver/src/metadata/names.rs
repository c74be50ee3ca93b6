//! Generated names.

/// Returns a name of a prefix and five random characters.
pub(crate) fn generate(base: &str, random: impl Fn() -> u64) -> String {
    let mut name: String = base.chars().take(MAX_BASE).collect();
    let mut bits = random();
    for _ in 0..5 {
        let at = usize::try_from(bits % ALPHABET.len() as u64).unwrap_or_default();
        bits /= ALPHABET.len() as u64;
        name.push(char::from(ALPHABET[at]));
    }
    name
}

/// Letters and digits without vowels and their look-alikes, so that names contain no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const MAX_BASE: usize = 58;
