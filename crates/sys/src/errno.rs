//! Text of error numbers.

use std::io;

/// Text of the C library for an error number, without Rust's "(os error N)".
pub fn text(errno: i32) -> String {
    describe(&io::Error::from_raw_os_error(errno))
}

/// The same for an `io::Error` that may carry no number.
pub fn describe(error: &io::Error) -> String {
    let full = error.to_string();
    match full.find(" (os error") {
        Some(end) => full[..end].to_owned(),
        None => full,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_without_the_number() {
        assert_eq!(super::text(libc::EACCES), "Permission denied");
        assert_eq!(super::describe(&std::io::Error::other("plain")), "plain");
    }
}
