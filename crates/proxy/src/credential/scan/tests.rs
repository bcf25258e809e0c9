use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::{Forms, Hidden, Scanner};

const SECRET: &str = "sk-live/9+A&\"b\\c=";
const PLACEHOLDER: &str = "nono-dummy-0123";

fn forms(user: Option<&str>) -> Arc<Forms> {
    Arc::new(Forms::new(&[Hidden { secret: SECRET, placeholder: PLACEHOLDER, user }]))
}

fn cleaned(forms: &Arc<Forms>, pieces: &[&[u8]]) -> Vec<u8> {
    let mut scanner = Scanner::new(forms.clone());
    let mut clean = Vec::new();
    for piece in pieces {
        scanner.push(piece, &mut clean);
    }
    scanner.finish(&mut clean);
    clean
}

#[test]
fn every_spelling_is_found() {
    let every = |spelled: fn(u8) -> String| SECRET.bytes().map(spelled).collect::<Vec<_>>().concat();
    let percent = every(|byte| format!("%{byte:02X}"));
    let html = SECRET.replace('&', "&amp;").replace('"', "&quot;");
    let json = serde_json::to_string(SECRET).unwrap();
    let unicode = every(|byte| format!("\\u{byte:04X}"));
    for spelled in [
        SECRET,
        &percent,
        &percent.to_ascii_lowercase(),
        "sk-live%2F9%2BA%26%22b%5Cc%3D",
        &html,
        json.trim_matches('"'),
        "sk-live\\/9+A\\u0026\\\"b\\\\c\\u003d",
        &unicode,
    ] {
        let page = format!("<p>key={spelled}</p>");
        let clean = cleaned(&forms(None), &[page.as_bytes()]);
        assert_eq!(String::from_utf8(clean).unwrap(), format!("<p>key={PLACEHOLDER}</p>"), "{spelled}");
    }
}

#[test]
fn base64_is_found_wherever_it_begins() {
    for before in ["", "u", "us", "use", "user:", "another:"] {
        for encoded in [
            STANDARD.encode(format!("{before}{SECRET}!")),
            URL_SAFE_NO_PAD.encode(format!("{before}{SECRET}")),
        ] {
            let clean = cleaned(&forms(None), &[encoded.as_bytes()]);
            let clean = String::from_utf8(clean).unwrap();
            assert!(clean.contains(PLACEHOLDER), "{before:?}: {clean}");
            // At most the characters that the secret shares with its neighbours are left.
            let before = (before.len() * 8).div_ceil(6);
            assert!(clean.len() <= before + PLACEHOLDER.len() + 5, "{before:?}: {clean}");
        }
    }
}

#[test]
fn a_basic_pair_becomes_the_placeholders_pair() {
    let said = format!("Basic {}.", STANDARD.encode(format!("me:{SECRET}")));
    let clean = String::from_utf8(cleaned(&forms(Some("me")), &[said.as_bytes()])).unwrap();
    let pair = STANDARD.encode(format!("me:{PLACEHOLDER}"));
    assert!(clean.starts_with(&format!("Basic {}", pair.trim_end_matches('='))), "{clean}");
}

#[test]
fn each_secret_has_its_own_placeholder() {
    let one = Hidden { secret: "secret-number-one", placeholder: "dummy-a", user: None };
    let two = Hidden { secret: "secret-number-two", placeholder: "dummy-b", user: None };
    let forms = Arc::new(Forms::new(&[one, two]));
    let clean = forms.scrub(b"secret-number-two, secret-number-one, secret-number-");
    assert_eq!(String::from_utf8(clean).unwrap(), "dummy-b, dummy-a, dummy-a");
}

#[test]
fn nothing_waits_that_cannot_be_the_secret() {
    let mut scanner = Scanner::new(forms(None));
    for (said, through) in [
        ("data: hello\n\n", "data: hello\n\n"),
        ("s", ""),
        ("k", ""),
        ("-xylophone", "sk-xylophone"),
        ("data: sk-live/9+A&", "data: "),
        ("\"b\\c=\n\n", "nono-dummy-0123\n\n"),
    ] {
        let mut clean = Vec::new();
        scanner.push(said.as_bytes(), &mut clean);
        assert_eq!(String::from_utf8(clean).unwrap(), through);
    }
    assert_eq!(scanner.found(), 1);
}

#[test]
fn a_page_cut_off_inside_the_secret_does_not_show_its_beginning() {
    let cut = |length: usize| {
        let page = format!("key: {}", &SECRET[..length]);
        String::from_utf8(cleaned(&forms(None), &[page.as_bytes()])).unwrap()
    };
    assert_eq!(cut(4), "key: sk-l");
    for length in 8..=SECRET.len() {
        assert_eq!(cut(length), format!("key: {PLACEHOLDER}"));
    }
}

#[test]
fn nothing_of_it_can_be_printed() {
    let forms = forms(None);
    let printed = format!("{forms:?} {:?}", Scanner::new(forms.clone()));
    assert!(!printed.contains("sk-live"));
}

/// Reference implementation for a secret with one spelling only, on the whole body, by the standard library.
fn oracle(body: &str, secret: &str) -> String {
    body.replace(secret, "XX")
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        body in prop::collection::vec(prop_oneof![
            Just(SECRET.to_owned()),
            Just(SECRET.replace('/', "\\/")),
            Just(SECRET.replace('&', "%26")),
            Just(STANDARD.encode(SECRET)),
            "[sk\\-live/%&\"]{0,6}",
            ".{0,6}",
        ], 0..8),
        cuts in prop::collection::vec(0usize..400, 0..12),
    ) {
        let body = body.concat().into_bytes();
        let mut cuts: Vec<_> = cuts.into_iter().filter(|cut| *cut <= body.len()).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
        let forms = forms(None);
        let at_once = cleaned(&forms, &[&body]);
        prop_assert_eq!(&cleaned(&forms, &pieces), &at_once);
        let hidden = !at_once.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        prop_assert!(hidden);
    }

    #[test]
    fn what_is_not_the_secret_stays(body in "[ab]{0,200}", secret in "[ab]{8,10}", step in 1usize..20) {
        let forms = Arc::new(Forms::new(&[Hidden { secret: &secret, placeholder: "XX", user: None }]));
        // Its last bytes could be the beginning of the secret.
        let body = format!("{body} end");
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(step).collect();
        let clean = String::from_utf8(cleaned(&forms, &pieces)).unwrap();
        prop_assert_eq!(clean, oracle(&body, &secret));
    }

    #[test]
    fn other_bytes_stay(body in prop::collection::vec(any::<u8>(), 0..2000), step in 1usize..300) {
        let pieces: Vec<&[u8]> = body.chunks(step).collect();
        prop_assert_eq!(cleaned(&forms(Some("me")), &pieces), body);
    }
}
