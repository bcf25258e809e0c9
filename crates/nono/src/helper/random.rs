//! Random numbers as text.

use std::fmt::Write;

use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Random bytes in hexadecimal digits.
pub(crate) fn random_hex<const BYTES: usize>() -> Result<String, rustix::io::Errno> {
    let mut bytes = [0u8; BYTES];
    // So few bytes are returned all at once or not at all.
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
