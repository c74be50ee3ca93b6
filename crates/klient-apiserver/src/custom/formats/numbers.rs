//! Formats of numbers with check digits.

use super::is_digits;

/// Returns whether a text is an ISBN of ten digits, the last of which can be `X`.
pub(super) fn is_isbn10(text: &str) -> bool {
    let text = without_separators(text);
    let (Some(digits), Some(last)) = (text.get(..9), text.get(9..)) else { return false };
    let last = match last {
        "X" => 10,
        last if last.len() == 1 && is_digits(last) => value(last.as_bytes()[0]),
        _ => return false,
    };
    let sum: u32 = (1..).zip(digits.bytes()).map(|(weight, digit)| weight * value(digit)).sum();
    is_digits(digits) && (sum + 10 * last).is_multiple_of(11)
}

/// Returns whether a text is an ISBN of thirteen digits.
pub(super) fn is_isbn13(text: &str) -> bool {
    let text = without_separators(text);
    let sum: u32 = text.bytes().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| weight * value(digit)).sum();
    text.len() == 13 && is_digits(&text) && sum.is_multiple_of(10)
}

/// Returns whether the digits of a text are the number of a credit card.
pub(super) fn is_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let prefix = |length: usize| digits.get(..length).and_then(|prefix| prefix.parse::<u32>().ok()).unwrap_or_default();
    let is_issued = match digits.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(3), 300..=305) || matches!(prefix(2), 36 | 38),
        15 => matches!(prefix(2), 34 | 37) || matches!(prefix(4), 2131 | 1800),
        16 => prefix(1) == 4 || matches!(prefix(2), 51..=55 | 65 | 35) || prefix(4) == 6011,
        _ => false,
    };
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip([1, 2].into_iter().cycle())
        .map(|(digit, weight)| weight * value(digit))
        .map(|product| product / 10 + product % 10)
        .sum();
    is_issued && sum.is_multiple_of(10)
}

/// Returns whether a text is a number of the social security of the United States.
pub(super) fn is_social_security(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    matches!(parts[..], [area, group, serial] if (area.len(), group.len(), serial.len()) == (3, 2, 4))
        && parts.iter().all(|part| is_digits(part))
}

fn without_separators(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '-')).collect()
}

fn value(digit: u8) -> u32 {
    u32::from(digit.saturating_sub(b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_are_verified() {
        assert!(is_isbn10("0-321-75104-3") && is_isbn10("080442957X"));
        assert!(!is_isbn10("0321751044") && !is_isbn10("032175104") && !is_isbn10("x"));
        assert!(is_isbn13("978-0321751041"));
        assert!(!is_isbn13("978-0321751042") && !is_isbn13("9780321"));
        assert!(is_card("4111 1111 1111 1111") && is_card("378282246310005"));
        assert!(!is_card("4111 1111 1111 1112") && !is_card("9111111111111111") && !is_card(""));
        assert!(is_social_security("078-05-1120") && !is_social_security("078051120"));
    }
}
