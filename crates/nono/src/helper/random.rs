//! Numbers that nobody guesses, as text.

use std::fmt::Write;

use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hexadecimal, two digits for each byte.
pub(crate) fn random_hex<const BYTES: usize>() -> Result<String, rustix::io::Errno> {
    let mut bytes = [0u8; BYTES];
    // So few bytes come whole or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_differ() {
        let (a, b) = (random_hex::<16>().unwrap(), random_hex::<16>().unwrap());
        assert!(a != b && a.len() == 32);
    }
}
