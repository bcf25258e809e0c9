use proptest::prelude::*;

use super::*;

/// Decodes a body that comes in these pieces. Returns its data, and the bytes left over.
fn read(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, Vec<u8>), BadBody> {
    let mut decoder = Decoder::new(framing);
    let (mut data, mut over) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            if decoder.is_done() {
                over.extend_from_slice(rest);
                break;
            }
            let step = decoder.step(rest)?;
            data.extend_from_slice(&rest[step.data]);
            rest = &rest[step.consumed..];
        }
    }
    decoder.end()?;
    Ok((data, over))
}

#[test]
fn chunks() {
    let fine: &[(&str, &str, &str)] = &[
        ("0\r\n\r\n", "", ""),
        ("5\r\nhello\r\n0\r\n\r\nGET", "hello", "GET"),
        ("5;a=b;c=\"d\"\r\nhello\r\nA\r\n0123456789\r\n00\r\n\r\n", "hello0123456789", ""),
        ("1\r\nx\r\n0\r\nX: y\r\nZ: \r\n\r\nover", "x", "over"),
        ("000000000000001\r\nx\r\n0\r\n\r\n", "x", ""),
    ];
    for (text, data, over) in fine {
        let expected = (data.as_bytes().to_vec(), over.as_bytes().to_vec());
        assert_eq!(read(Framing::Chunked, &[text.as_bytes()]), Ok(expected), "{text:?}");
    }
    for wrong in [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "+1\r\n",
        "0x1\r\nx\r\n",
        " 1\r\nx\r\n",
        "1 \r\nx\r\n",
        "1\nx\r\n",
        "1\r\rx",
        "1\r\nxy\r\n",
        "1\r\nx\n",
        "1\r\nx0\r\n\r\n",
        "1;\nx\r\n",
        "1;a\rb\r\nx",
        "1;\0\r\n",
        "0\r\n folded\r\n\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\n\n",
        "0\r\nX\0\r\n\r\n",
        "0000000000000001\r\nx",
        "fffffffffffffffff\r\n",
        "1,1\r\n",
    ] {
        assert_eq!(read(Framing::Chunked, &[wrong.as_bytes()]), Err(BadBody::Chunk), "{wrong:?}");
    }
    for short in ["", "1", "1\r\n", "1\r\nx", "1\r\nx\r\n", "0\r\n", "0\r\nX: y\r\n"] {
        assert_eq!(read(Framing::Chunked, &[short.as_bytes()]), Err(BadBody::Short), "{short:?}");
    }
}

#[test]
fn extensions_and_trailers_are_bounded() {
    let extension = format!("1;{}\r\nx\r\n", "e".repeat(5000));
    let trailer = format!("0\r\nX: {}\r\n\r\n", "t".repeat(9000));
    assert_eq!(read(Framing::Chunked, &[extension.repeat(2).as_bytes()]), Err(BadBody::TooMuch));
    assert_eq!(read(Framing::Chunked, &[trailer.as_bytes()]), Err(BadBody::TooMuch));
    let lines = format!("0\r\n{}\r\n", "X:\r\n".repeat(9000));
    assert_eq!(read(Framing::Chunked, &[lines.as_bytes()]), Err(BadBody::TooMuch));
}

#[test]
fn lengths() {
    assert_eq!(read(Framing::Length(3), &[b"ab", b"cd"]), Ok((b"abc".to_vec(), b"d".to_vec())));
    assert_eq!(read(Framing::Length(3), &[b"ab"]), Err(BadBody::Short));
    assert_eq!(read(Framing::Empty, &[b"x"]), Ok((Vec::new(), b"x".to_vec())));
    assert_eq!(read(Framing::UntilClose, &[b"ab", b"c"]), Ok((b"abc".to_vec(), Vec::new())));
    let mut decoder = Decoder::new(Framing::Length(10));
    decoder.passed(7);
    assert_eq!((decoder.plain(), decoder.is_done()), (3, false));
    decoder.passed(3);
    assert!(decoder.is_done());
}

proptest! {
    /// The result does not depend on how the bytes are split.
    #[test]
    fn any_split(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
        extension in "(;[a-z]{1,5}(=[a-z]{1,5})?)?",
        trailer in "(X: [a-z]{0,5}\r\n)?",
        over in prop::collection::vec(any::<u8>(), 0..10),
        sizes in prop::collection::vec(1usize..50, 1..40),
    ) {
        let mut text = Vec::new();
        for chunk in &chunks {
            text.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
            text.extend_from_slice(chunk);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
        text.extend_from_slice(&over);
        let mut pieces = Vec::new();
        let mut rest = text.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        let expected = (chunks.concat(), over);
        prop_assert_eq!(read(Framing::Chunked, &pieces), Ok(expected.clone()));
        let bytes: Vec<_> = text.chunks(1).collect();
        prop_assert_eq!(read(Framing::Chunked, &bytes), Ok(expected));
    }

    /// An error does not depend on how the bytes are split.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(prop::sample::select(b"01aA;\r\n x:".to_vec()), 0..40), at in 0usize..40) {
        let at = at.min(bytes.len());
        let whole = read(Framing::Chunked, &[&bytes]);
        prop_assert_eq!(&read(Framing::Chunked, &[&bytes[..at], &bytes[at..]]), &whole);
        let single: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(Framing::Chunked, &single), &whole);
    }
}
