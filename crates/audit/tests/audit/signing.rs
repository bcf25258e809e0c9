//! Signatures: by us, checked by us and by OpenSSL, with the public key alone.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::common::{Lab, records};
use nono_audit::event::AuditEvent;
use nono_audit::log::Options;
use nono_audit::sign::KeyError;
use nono_audit::verify::{self, ProblemKind};
use nono_audit::{EventProof, Ledger, PublicKey, SigningKey};

fn verified(lab: &Lab, key: PublicKey) -> verify::Verification {
    let options = verify::Options { public_key: Some(key) };
    verify::verify(&lab.session("one"), &Ledger::of(&lab.audit), &options)
}

#[test]
fn a_signed_seal_is_checked_with_the_public_key() {
    let lab = Lab::new();
    let key = SigningKey::generate().unwrap();
    key.save(&lab.path("key.pem")).unwrap();
    let public = key.public();
    let finished = lab.finished("one", Options { integrity: false, key: Some(key) });
    assert_eq!(finished.record.audit_attestation.unwrap().public_key, public.to_string());
    let found = verified(&lab, public);
    assert!(found.ok, "{found:?}");
    assert_eq!(found.signed_by, Some(public.to_string()));
    let stranger = SigningKey::generate().unwrap().public();
    assert_eq!(verified(&lab, stranger).problems[0].kind, ProblemKind::Signature);
    let proof = EventProof::build(&lab.session("one"), "one", 1).unwrap();
    proof.check(Some(&public)).unwrap();
    assert!(proof.check(Some(&stranger)).is_err());
    assert!(EventProof { session_id: "two".into(), ..proof }.check(Some(&public)).is_err());
    let again = SigningKey::load(&lab.path("key.pem")).unwrap();
    assert_eq!(again.public(), public);
    assert!(again.save(&lab.path("key.pem")).is_err());
    assert!(!format!("{again:?}").contains(&std::fs::read_to_string(lab.path("key.pem")).unwrap()[30..60]));
}

#[test]
fn every_field_of_a_seal_is_signed() {
    let lab = Lab::new();
    lab.finished("one", Options { integrity: true, key: Some(SigningKey::generate().unwrap()) });
    let AuditEvent::Seal(seal) = records(&lab.session("one")).pop().unwrap().event else { panic!() };
    seal.check_signature("one", None).unwrap();
    let changes: [&dyn Fn(&mut nono_audit::event::Seal); 5] = [
        &|seal| seal.time_ms += 1,
        &|seal| seal.event_count += 1,
        &|seal| seal.chain_head = seal.merkle_root,
        &|seal| seal.merkle_root = seal.chain_head,
        &|seal| seal.tree = None,
    ];
    for change in changes {
        let mut changed = seal.clone();
        change(&mut changed);
        assert!(changed.check_signature("one", None).is_err());
    }
}

#[test]
fn an_unsigned_log_does_not_pass_where_a_key_is_expected() {
    let lab = Lab::new();
    lab.sealed("one");
    let key = SigningKey::generate().unwrap().public();
    assert_eq!(verified(&lab, key).problems[0].kind, ProblemKind::Signature);
    assert!(EventProof::build(&lab.session("one"), "one", 0).unwrap().check(Some(&key)).is_err());
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let lab = Lab::new();
    let path = lab.path("key");
    SigningKey::generate().unwrap().save(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    for mode in [0o640, 0o604, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(SigningKey::load(&path), Err(KeyError::Exposed { .. })), "{mode:o}");
    }
    std::fs::write(lab.path("junk"), "junk").unwrap();
    std::fs::set_permissions(lab.path("junk"), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(matches!(SigningKey::load(&lab.path("junk")), Err(KeyError::Malformed { .. })));
    assert!(matches!(PublicKey::load(&lab.path("junk")), Err(KeyError::Malformed { .. })));
    assert!(SigningKey::load(&lab.path("none")).is_err());
}

/// OpenSSL makes keys that are understood here, and understands the public keys made here.
#[test]
fn openssl_agrees_about_keys() {
    let lab = Lab::new();
    let (key, public) = (lab.path("key.pem"), lab.path("public.pem"));
    let openssl = |args: &[&std::ffi::OsStr]| {
        let done = Command::new("openssl").args(args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    if Command::new("openssl").arg("version").output().is_err() {
        return nono_testkit::skip("no openssl");
    }
    openssl(&["genpkey".as_ref(), "-algorithm".as_ref(), "ed25519".as_ref(), "-out".as_ref(), key.as_ref()]);
    let loaded = SigningKey::load(&key).unwrap();
    let pem = openssl(&["pkey".as_ref(), "-in".as_ref(), key.as_ref(), "-pubout".as_ref()]);
    assert_eq!(pem, loaded.public().pem());
    std::fs::write(&public, &pem).unwrap();
    assert_eq!(PublicKey::load(&public).unwrap(), loaded.public());
    assert_eq!(PublicKey::parse(&loaded.public().to_string()), Some(loaded.public()));
    // The public key of our own.
    std::fs::write(&public, SigningKey::generate().unwrap().public().pem()).unwrap();
    openssl(&["pkey".as_ref(), "-pubin".as_ref(), "-in".as_ref(), public.as_ref(), "-noout".as_ref()]);
}
