//! Heads of requests and responses: whatever comes, a value or an error, and the same one however it arrives.

use nono_proxy::Limits;
use nono_proxy::head::{Parsed, parse_request, parse_response};

pub(crate) fn check(bytes: &[u8]) {
    let limits = Limits::default();
    if let Ok(Parsed::Complete { head, length }) = parse_request(bytes, &limits) {
        assert!(length <= bytes.len());
        assert!(bytes[..length].ends_with(b"\r\n\r\n"), "a head ends with an empty line");
        // What follows a head changes nothing about it.
        assert_eq!(parse_request(&bytes[..length], &limits), Ok(Parsed::Complete { head, length }));
        // Before its end it is not there yet.
        for cut in [0, length / 2, length - 1] {
            assert!(!matches!(parse_request(&bytes[..cut], &limits), Ok(Parsed::Complete { .. })));
        }
    }
    if let Ok(Parsed::Complete { head, length }) = parse_response(bytes, &limits) {
        assert_eq!(parse_response(&bytes[..length], &limits), Ok(Parsed::Complete { head, length }));
    }
}
