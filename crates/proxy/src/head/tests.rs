use proptest::prelude::*;

use super::*;
use crate::config::RequestTarget;

fn limits() -> Limits {
    Limits { head_bytes: 4096, headers: 20, ..Limits::default() }
}

fn parse(text: &str) -> Result<RequestHead, Malformed> {
    match parse_request(text.as_bytes(), &limits())? {
        Parsed::Complete { head, length } => {
            assert_eq!(length, text.len());
            Ok(head)
        }
        Parsed::Incomplete => panic!("incomplete: {text:?}"),
    }
}

fn target(host: &str, port: u16) -> RequestTarget {
    RequestTarget { host: host.parse().unwrap(), port }
}

#[test]
fn every_shape_that_could_be_smuggled_is_refused() {
    use Malformed as M;
    let fields = [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", M::AmbiguousLength),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", M::AmbiguousLength),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", M::AmbiguousLength),
        ("Content-Length: 5\r\ncontent-length: 6\r\n", M::AmbiguousLength),
        ("Content-Length: 5, 5\r\n", M::Length),
        ("Content-Length: +5\r\n", M::Length),
        ("Content-Length: -5\r\n", M::Length),
        ("Content-Length: 0x5\r\n", M::Length),
        ("Content-Length: 5 5\r\n", M::Length),
        ("Content-Length:\r\n", M::Length),
        ("Content-Length: 99999999999999999999\r\n", M::Length),
        ("Transfer-Encoding: gzip\r\n", M::TransferEncoding),
        ("Transfer-Encoding: chunked, chunked\r\n", M::TransferEncoding),
        ("Transfer-Encoding: gzip, chunked\r\n", M::TransferEncoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", M::TransferEncoding),
        ("Transfer-Encoding: identity\r\n", M::TransferEncoding),
        ("Transfer-Encoding: \"chunked\"\r\n", M::TransferEncoding),
        ("Transfer-Encoding: chunked;x\r\n", M::TransferEncoding),
        ("Transfer-Encoding: x\u{b}chunked\r\n", M::ControlByte),
        ("Transfer-Encoding : chunked\r\n", M::Field),
        ("Transfer-Encoding\t: chunked\r\n", M::Field),
        ("X: y\n", M::LineEnd),
        ("X: y\r", M::LineEnd),
        ("X: y\rZ: z\r\n", M::LineEnd),
        ("X: y\r\r\n", M::LineEnd),
        ("X: y\r\n folded\r\n", M::Folded),
        ("X: y\r\n\tfolded\r\n", M::Folded),
        ("X: y\0\r\n", M::ControlByte),
        ("X: y\u{7f}\r\n", M::ControlByte),
        ("X: y\u{1}\r\n", M::ControlByte),
        (": y\r\n", M::Field),
        ("X\r\n", M::Field),
        ("X Y: z\r\n", M::Field),
        ("X\u{e9}: z\r\n", M::Field),
        ("(X): z\r\n", M::Field),
        ("Host: a.test\r\n", M::ManyHosts),
        ("host: b.test\r\n", M::ManyHosts),
    ];
    for (field, why) in fields {
        let text = format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{field}\r\n");
        assert_eq!(parse(&text), Err(why), "{field:?}");
        // A folded first field would be part of the request line.
        if let Some(folded) = field.strip_prefix("X: y\r\n") {
            let text = format!("GET http://a.test/ HTTP/1.1\r\n{folded}Host: a.test\r\n\r\n");
            assert_eq!(parse(&text), Err(why), "{folded:?}");
        }
    }
    let old = "POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(parse(old), Err(M::TransferEncoding));
}

#[test]
fn request_lines_that_are_none() {
    use Malformed as M;
    let lines = [
        ("GET http://a.test/", M::RequestLine),
        ("GET  http://a.test/ HTTP/1.1", M::RequestLine),
        ("GET http://a.test/  HTTP/1.1", M::RequestLine),
        ("GET http://a.test/ HTTP/1.1 ", M::RequestLine),
        (" GET http://a.test/ HTTP/1.1", M::RequestLine),
        ("GET\thttp://a.test/ HTTP/1.1", M::RequestLine),
        ("GET http://a.test/ x HTTP/1.1", M::RequestLine),
        ("GET http://a.test/ http/1.1", M::Version),
        ("GET http://a.test/ HTTP/1.2", M::Version),
        ("GET http://a.test/ HTTP/2.0", M::Version),
        ("GET http://a.test/ HTTP/0.9", M::Version),
        ("GET http://a.test/ HTTP/1.01", M::Version),
        ("GET http://a.test/ HTTP/1.1\tx", M::Version),
        ("G\"T http://a.test/ HTTP/1.1", M::Method),
        ("GET/ http://a.test/ HTTP/1.1", M::Method),
        ("GET a.test HTTP/1.1", M::Target),
        ("GET ftp://a.test/ HTTP/1.1", M::Target),
        ("GET http:/a.test/ HTTP/1.1", M::Target),
        ("GET http:a.test HTTP/1.1", M::Target),
        ("GET * HTTP/1.1", M::Target),
        ("GET http://a.test/\u{e9} HTTP/1.1", M::Target),
        ("GET http://a.test/\tx HTTP/1.1", M::Target),
        ("GET http://a.test/#x HTTP/1.1", M::UserOrFragment),
        ("GET http://a.test#x HTTP/1.1", M::UserOrFragment),
        ("GET http://b.test@a.test/ HTTP/1.1", M::UserOrFragment),
        ("GET http://b.test:80@a.test/ HTTP/1.1", M::UserOrFragment),
        ("GET http:///x HTTP/1.1", M::Host),
        ("GET http://?x HTTP/1.1", M::Host),
        ("GET http://a.test\\@b.test/ HTTP/1.1", M::UserOrFragment),
        ("GET http://a.test\\b.test/ HTTP/1.1", M::Host),
        ("GET http://a%2etest/ HTTP/1.1", M::Host),
        ("GET http://a..test/ HTTP/1.1", M::Host),
        ("GET http://a.test../ HTTP/1.1", M::Host),
        ("GET http://127.1/ HTTP/1.1", M::Host),
        ("GET http://0177.0.0.1/ HTTP/1.1", M::Host),
        ("GET http://0x7f000001/ HTTP/1.1", M::Host),
        ("GET http://2130706433/ HTTP/1.1", M::Host),
        ("GET http://[::1/ HTTP/1.1", M::Host),
        ("GET http://[::1]x/ HTTP/1.1", M::Host),
        ("GET http://[fe80::1%25eth0]/ HTTP/1.1", M::Host),
        ("GET http://::1/ HTTP/1.1", M::Port),
        ("GET http://a.test:/ HTTP/1.1", M::Port),
        ("GET http://a.test:0/ HTTP/1.1", M::Port),
        ("GET http://a.test:080/ HTTP/1.1", M::Port),
        ("GET http://a.test:+80/ HTTP/1.1", M::Port),
        ("GET http://a.test:65536/ HTTP/1.1", M::Port),
        ("GET http://a.test:80:80/ HTTP/1.1", M::Port),
        ("CONNECT a.test HTTP/1.1", M::Port),
        ("CONNECT http://a.test/ HTTP/1.1", M::Port),
        ("CONNECT a.test:443/ HTTP/1.1", M::Port),
        ("CONNECT /x HTTP/1.1", M::Port),
        ("CONNECT x@a.test:443 HTTP/1.1", M::UserOrFragment),
    ];
    for (line, why) in lines {
        assert_eq!(parse(&format!("{line}\r\nHost: a.test\r\n\r\n")), Err(why), "{line:?}");
    }
    let long = "M".repeat(33);
    assert_eq!(parse(&format!("{long} http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n")), Err(M::Method));
}

#[test]
fn the_host_field_says_the_same_as_the_target() {
    use Malformed as M;
    let head = |target: &str, host: &str| parse(&format!("GET {target} HTTP/1.1\r\n{host}\r\n")).map(|_| ());
    assert_eq!(head("http://a.test/", "Host: A.Test.:80\r\n"), Ok(()));
    assert_eq!(head("http://A.test:80/", "Host: a.test\r\n"), Ok(()));
    assert_eq!(head("http://a.test/", "Host: b.test\r\n"), Err(M::OtherHost));
    assert_eq!(head("http://a.test/", "Host: a.test:81\r\n"), Err(M::OtherHost));
    assert_eq!(head("http://a.test/", "Host:\r\n"), Err(M::Host));
    assert_eq!(head("http://a.test/", "Host: a.test, b.test\r\n"), Err(M::Host));
    assert_eq!(head("http://a.test/", "Host: x@a.test\r\n"), Err(M::UserOrFragment));
    assert_eq!(head("http://a.test/", ""), Err(M::NoHost));
    assert_eq!(head("/x", ""), Err(M::NoHost));
    assert_eq!(parse("GET http://a.test/ HTTP/1.0\r\n\r\n").map(|_| ()), Ok(()));
}

#[test]
fn forms() {
    let form =
        |line: &str, host: &str| parse(&format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap().form;
    assert_eq!(form("CONNECT A.test:443", "whatever"), TargetForm::Tunnel(target("a.test", 443)));
    assert_eq!(form("CONNECT [::1]:443", "a"), TargetForm::Tunnel(target("[::1]", 443)));
    assert_eq!(
        form("GET HTTP://a.test?q=http://b.test/", "a.test"),
        TargetForm::Absolute {
            https: false,
            target: target("a.test", 80),
            path: "/?q=http://b.test/".to_owned()
        }
    );
    assert_eq!(
        form("GET https://a.test/x", "a.test"),
        TargetForm::Absolute { https: true, target: target("a.test", 443), path: "/x".to_owned() }
    );
    assert_eq!(form("GET //b.test/x", "a.test"), TargetForm::Origin { path: "//b.test/x".to_owned() });
    assert_eq!(form("OPTIONS *", "a.test"), TargetForm::Asterisk);
}

#[test]
fn limits_hold_before_the_end_is_seen() {
    let large = "GET http://a.test/ HTTP/1.1\r\n".to_owned() + &"x".repeat(5000);
    assert_eq!(parse_request(large.as_bytes(), &limits()), Err(Malformed::TooLarge));
    let many = "GET http://a.test/ HTTP/1.1\r\n".to_owned() + &"X: y\r\n".repeat(21);
    assert_eq!(parse_request(many.as_bytes(), &limits()), Err(Malformed::TooManyFields));
    let most = "GET http://a.test/ HTTP/1.0\r\n".to_owned() + &"X: y\r\n".repeat(20) + "\r\n";
    assert!(parse(&most).is_ok());
}

#[test]
fn a_body_in_a_connect_is_refused() {
    for field in ["Content-Length: 1", "Transfer-Encoding: chunked"] {
        let text = format!("CONNECT a.test:443 HTTP/1.1\r\n{field}\r\n\r\n");
        assert_eq!(parse(&text), Err(Malformed::AmbiguousLength));
    }
    assert!(parse("CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 0\r\n\r\n").is_ok());
}

#[test]
fn responses() {
    let parse = |text: &str| parse_response(text.as_bytes(), &limits());
    let framing = |text: &str, method: &str| match parse(text) {
        Ok(Parsed::Complete { head, .. }) => head.framing(method),
        other => panic!("{text:?}: {other:?}"),
    };
    assert_eq!(framing("HTTP/1.1 200 OK\r\n\r\n", "GET"), Framing::UntilClose);
    assert_eq!(framing("HTTP/1.1 200\r\nContent-Length: 7\r\n\r\n", "GET"), Framing::Length(7));
    assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", "HEAD"), Framing::Empty);
    assert_eq!(framing("HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n", "GET"), Framing::Empty);
    assert_eq!(framing("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", "GET"), Framing::Chunked);
    for line in ["HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 099 OK", "HTTP/1.1 2x0 OK", "HTTP/1.1 200OK"]
    {
        assert_eq!(parse(&format!("{line}\r\n\r\n")), Err(Malformed::StatusLine), "{line}");
    }
    for line in ["HTTP/2 200 OKAY", "http/1.1 200 OK", "HTTP/1.1\t200 OK", "ICY 200 OKAYY"] {
        assert_eq!(parse(&format!("{line}\r\n\r\n")), Err(Malformed::Version), "{line}");
    }
}

proptest! {
    /// No input panics, and the result does not depend on when parsing starts.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _answer = parse_request(&bytes, &limits());
        let _answer = parse_response(&bytes, &limits());
    }

    /// The result does not depend on how a head is split, and its start alone is never an error.
    #[test]
    fn any_split(
        method in "[A-Z]{1,10}",
        path in "/[!-\"$-~]{0,20}",
        fields in prop::collection::vec(("X-[a-z]{1,8}", "[!-~]([ -~]{0,10}[!-~])?"), 0..8),
        at in any::<prop::sample::Index>(),
    ) {
        prop_assume!(method != "CONNECT");
        let mut text = format!("{method} http://a.test{path} HTTP/1.1\r\nHost: a.test\r\n");
        for (name, value) in &fields {
            text.extend([name, ":\t ", value, " \r\n"]);
        }
        text.push_str("\r\n");
        let whole = parse(&text).unwrap();
        prop_assert_eq!(&whole.method, &method);
        prop_assert_eq!(&whole.form, &TargetForm::Absolute { https: false, target: target("a.test", 80), path });
        let read: Vec<_> = whole.fields.iter().skip(1).map(|field| {
            (field.name.clone(), String::from_utf8(field.value.clone()).unwrap())
        }).collect();
        prop_assert_eq!(read, fields);
        let at = at.index(text.len());
        prop_assert_eq!(parse_request(&text.as_bytes()[..at], &limits()), Ok(Parsed::Incomplete));
        prop_assert!(!worth_parsing(&text.as_bytes()[..at], 0));
        prop_assert!(worth_parsing(text.as_bytes(), at));
        let more = text.clone() + "GET";
        let parsed = parse_request(more.as_bytes(), &limits());
        prop_assert_eq!(parsed, Ok(Parsed::Complete { head: whole, length: text.len() }));
    }

    /// Errors are found without waiting for the end of the head: whatever the parser refuses is worth parsing.
    #[test]
    fn what_is_refused_is_looked_at(text in "[A-Z \r\n:\\x00-\\x20]{0,60}") {
        if let Err(why) = parse_request(text.as_bytes(), &limits()) {
            prop_assert!(worth_parsing(text.as_bytes(), 0), "{:?}", why);
        }
    }
}
