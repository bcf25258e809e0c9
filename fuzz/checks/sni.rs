//! Name in a TLS ClientHello: any input gives a value or an error, and more bytes do not change a result.

use nono_proxy::client_hello::{opening, parse};

pub(crate) fn check(bytes: &[u8]) {
    let _opening = opening(bytes);
    if let Ok(found) = parse(bytes) {
        let mut longer = bytes.to_vec();
        longer.extend_from_slice(b"\x17\x03\x03\x00\x01x");
        assert_eq!(parse(&longer), Ok(found), "what comes after a greeting changes nothing about it");
    }
}
