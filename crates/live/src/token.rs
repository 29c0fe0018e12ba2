// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparing secrets.

/// Shortest token that a server takes for an address that others can reach.
pub const TOKEN_BYTES_MIN: usize = 16;

/// Longest token.
pub const TOKEN_BYTES_MAX: usize = 1024;

/// Whether two tokens are equal. The time taken depends only on the length of `given`.
#[must_use]
pub fn same_token(secret: &[u8], given: &[u8]) -> bool {
    let mut differs = usize::from(secret.len() != given.len());
    for (index, byte) in given.iter().enumerate() {
        let other = secret.get(index % secret.len().max(1)).copied().unwrap_or(0);
        // The value must not be known before the end, or the compiler may stop early.
        differs |= std::hint::black_box(usize::from(byte ^ other));
    }
    std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::same_token;

    #[test]
    fn only_the_same_is_the_same() {
        assert!(same_token(b"secret", b"secret") && same_token(b"", b""));
        for other in [&b"secreT"[..], b"secretsecret", b"secre", b"", b"Secret"] {
            assert!(!same_token(b"secret", other), "{other:?}");
        }
        assert!(!same_token(b"", b"x"));
    }
}
