//! Heads of requests and responses: any input gives a value or an error, the same however it is split.

use nono_proxy::Limits;
use nono_proxy::head::{Parsed, parse_request, parse_response};

pub(crate) fn check(bytes: &[u8]) {
    let limits = Limits::default();
    if let Ok(Parsed::Complete { head, length }) = parse_request(bytes, &limits) {
        assert!(length <= bytes.len());
        assert!(bytes[..length].ends_with(b"\r\n\r\n"), "a head ends with an empty line");
        // Bytes after a head do not change it.
        assert_eq!(parse_request(&bytes[..length], &limits), Ok(Parsed::Complete { head, length }));
        // A prefix of a head is incomplete.
        for cut in [0, length / 2, length - 1] {
            assert!(!matches!(parse_request(&bytes[..cut], &limits), Ok(Parsed::Complete { .. })));
        }
    }
    if let Ok(Parsed::Complete { head, length }) = parse_response(bytes, &limits) {
        assert_eq!(parse_response(&bytes[..length], &limits), Ok(Parsed::Complete { head, length }));
    }
}
