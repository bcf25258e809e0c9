//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Lower-case digits of these bytes.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Bytes of these digits, in lower or upper case. `None` if another character is among them, or one is left over.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)).as_deref(), Some(&*bytes));
        assert_eq!(decode(&encode(&bytes).to_uppercase()).as_deref(), Some(&*bytes));
        assert_eq!(encode(&[0, 0x9f, 0xff]), "009fff");
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["0", "0g", "+1", "0x", " 1", "é", "00é"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
        assert_eq!(decode(""), Some(Vec::new()));
    }
}
