//! Chunked bodies: the data does not depend on how they are split.

use nono_proxy::body::Decoder;
use nono_proxy::head::Framing;

/// Decodes a body: its data, the bytes consumed, and whether it is complete.
fn decode(bytes: &[u8], piece: usize) -> (Vec<u8>, usize, bool, bool) {
    let mut decoder = Decoder::new(Framing::Chunked);
    let (mut data, mut at) = (Vec::new(), 0);
    while at < bytes.len() && !decoder.is_done() {
        let input = &bytes[at..bytes.len().min(at + piece)];
        match decoder.step(input) {
            Ok(step) => {
                assert!(step.consumed <= input.len());
                assert!(step.consumed > 0, "it goes on");
                data.extend_from_slice(&input[step.data]);
                at += step.consumed;
            }
            Err(_) => return (data, at, false, true),
        }
    }
    (data, at, decoder.is_done(), false)
}

pub(crate) fn check(bytes: &[u8]) {
    let (whole, end, done, bad) = decode(bytes, usize::MAX / 2);
    for piece in [1, 2, 7] {
        let cut = decode(bytes, piece);
        assert_eq!((&cut.0, cut.2, cut.3), (&whole, done, bad));
        assert!(bad || cut.1 == end);
    }
}
