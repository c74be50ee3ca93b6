//! Names that the server makes up.

/// A name that begins so, with five characters that nobody has chosen.
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

/// Without vowels and what looks like them, so that no words come out.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const MAX_BASE: usize = 58;
