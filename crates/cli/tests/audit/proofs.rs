//! Signatures and proofs, as they are checked on another machine.

use std::fs;

use serde_json::Value;

use super::kit::Kit;

/// A key of this name in the home; the public one beside it.
fn keygen(kit: &Kit, name: &str) -> (String, String) {
    let path = kit.world.path(&format!("home/{name}"));
    let (private, public) = (path.display().to_string(), format!("{}.pub", path.display()));
    kit.sh(&format!("nono audit keygen -o {private} > {public}")).ok();
    (private, public)
}

#[test]
fn a_signed_seal_needs_nothing_but_the_public_key() {
    let kit = Kit::new();
    let (private, public) = keygen(&kit, "key");
    let (theirs, their_public) = keygen(&kit, "theirs");
    let id = kit.session(&["--audit-sign-key", &private], &format!("cat {}", kit.note("a")));
    let seal = kit.events(&id).pop().unwrap();
    let key = fs::read_to_string(&public).unwrap();
    assert_eq!(seal["type"], "seal");
    assert_eq!(seal["signature"]["public_key"], key.trim());
    assert_eq!(kit.record(&id)["audit_attestation"]["public_key"], key.trim());
    let found = kit.nono(&["audit", "verify", &id, "--json", "--public-key", &public]).ok().json();
    assert_eq!(found["sessions"][0]["signed_by"], key.trim());
    for args in [
        &["audit", "verify", &id, "--public-key", &their_public][..],
        &["audit", "verify", "--public-key", &their_public],
    ] {
        kit.nono(args).code(1);
        let found = kit.nono(&[args, &["--json"]].concat()).code(1).json();
        assert_eq!(found["sessions"][0]["problems"][0]["kind"], "signature", "{found:#}");
    }
    // Signed with the wrong key, and not signed.
    let other = kit.session(&["--audit-sign-key", &theirs], "true");
    let plain = kit.session(&["--audit-integrity"], "true");
    for id in [&other, &plain] {
        kit.nono(&["audit", "verify", id]).ok();
        kit.nono(&["audit", "verify", id, "--public-key", &public]).code(1);
    }
    // Another signature of the same length.
    let path = kit.audit().join(&id).join("events.ndjson");
    let text = fs::read_to_string(&path).unwrap();
    let (own, others) =
        (&seal["signature"]["signature"], &kit.events(&other).pop().unwrap()["signature"]["signature"]);
    fs::write(&path, text.replace(own.as_str().unwrap(), others.as_str().unwrap())).unwrap();
    kit.nono(&["audit", "verify", &id, "--public-key", &public]).code(1);
}

#[test]
fn a_key_that_others_can_read_is_no_key() {
    let kit = Kit::new();
    let (private, _) = keygen(&kit, "key");
    let again = kit.nono(&["audit", "keygen", "-o", &private]);
    assert_ne!(again.code, Some(0), "a key is never written over");
    for mode in ["640", "604", "620"] {
        kit.sh(&format!("chmod {mode} {private}")).ok();
        let said = kit.run(&["--audit-sign-key", &private], "touch ran").code(125);
        assert!(said.err.contains("key") && said.err.contains(&private), "{said:?}");
    }
    kit.sh(&format!("chmod 600 {private}; head -c 20 {private} > $HOME/half; chmod 600 $HOME/half")).ok();
    for name in ["half", "missing"] {
        let path = kit.world.path(&format!("home/{name}")).display().to_string();
        let said = kit.run(&["--audit-sign-key", &path], "touch ran").code(125);
        assert!(said.err.contains(&path) && said.err.contains("nothing was run"), "{said:?}");
    }
    assert!(!kit.world.path("work/ran").exists() && kit.ids().is_empty());
    // The command does not get it either, whatever it is granted.
    let home = kit.world.path("home").display().to_string();
    kit.world.file("home/plain", "plain\n", 0o600);
    let [ask, by, policy] = kit.asking();
    let rule = r#"{"rules": [{"path": "/**", "action": "allow"}]}"#;
    fs::write(kit.world.path("home/policy.json"), rule).unwrap();
    for flags in [&["--read", home.as_str()][..], &["--allow", &home], &[&ask, &by, &policy]] {
        let script = format!(
            "cat {home}/plain; cat {private} || cp {private} . || mv {private} x; rm -f {private}; true"
        );
        let said = kit.run(&[&["--audit-sign-key", &private], flags].concat(), &script).ok();
        assert_eq!(said.out, "plain\n", "{flags:?}: {said:?}");
        assert!(
            !kit.world.path("work/x").exists() && fs::metadata(&private).unwrap().len() > 100,
            "{flags:?}"
        );
    }
    kit.good();
}

#[test]
fn every_record_can_be_proven_and_nothing_else() {
    let kit = Kit::new();
    let (private, public) = keygen(&kit, "key");
    let (_, their_public) = keygen(&kit, "theirs");
    let script = format!("cat {} {}", kit.note("a"), kit.note("b"));
    let id = kit.session(&["--audit-sign-key", &private], &script);
    let other = kit.session(&["--audit-integrity"], &script);
    let events = kit.events(&id);
    let root = events.last().unwrap()["merkle_root"].as_str().unwrap().to_owned();
    let wrong = root.replace(char::is_numeric, "a");
    let file = kit.world.path("work/proof.json").display().to_string();
    let check = |flags: &[&str]| kit.nono(&[&["audit", "check-proof", &file], flags].concat());
    for (number, event) in events.iter().enumerate().take(events.len() - 1) {
        kit.sh("rm -f proof.json").ok();
        kit.nono(&["audit", "prove", &id, &number.to_string(), "-o", &file]).ok();
        let proof: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert_eq!(serde_json::from_str::<Value>(proof["event_json"].as_str().unwrap()).unwrap(), *event);
        for flags in [&["--root", &root][..], &["--session", &id], &["--public-key", &public], &[]] {
            let said = check(flags).ok();
            assert!(said.out.starts_with("holds: "), "{said:?}");
        }
        for flags in [&["--root", &wrong][..], &["--session", &other], &["--public-key", &their_public]] {
            let said = check(flags).code(1);
            assert!(said.out.starts_with("does not hold: "), "{flags:?} {said:?}");
        }
        altered(&file, &proof, &|| check(&["--root", &root]).code(1).out);
    }
    let said = kit.nono(&["audit", "prove", &id, "99"]);
    assert!(said.code != Some(0) && said.err.contains("99"), "{said:?}");
    fs::write(&file, "{}").unwrap();
    check(&["--root", &root]).code(1);
}

/// Each part of a proof, changed.
fn altered(file: &str, proof: &Value, fails: &dyn Fn() -> String) {
    let change = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut other = proof.clone();
        change(&mut other);
        assert_ne!(other, *proof, "{what}");
        fs::write(file, serde_json::to_vec(&other).unwrap()).unwrap();
        let said = fails();
        assert!(said.starts_with("does not hold: "), "{what}: {said}");
    };
    let flip = |value: &mut Value| {
        let text = value.as_str().unwrap();
        let first = if text.starts_with('0') { "1" } else { "0" };
        *value = Value::from(first.to_owned() + &text[1..]);
    };
    change("the event", &|proof| {
        let text = proof["event_json"].as_str().unwrap().replacen("time_ms\":1", "time_ms\":2", 1);
        proof["event_json"] = text.into();
    });
    change("the leaf", &|proof| flip(&mut proof["proof"]["leaf_hash"]));
    change("the root", &|proof| flip(&mut proof["proof"]["merkle_root"]));
    change("a sibling", &|proof| flip(&mut proof["proof"]["siblings"][0]["hash"]));
    change("a side", &|proof| {
        let side = &mut proof["proof"]["siblings"][0]["direction"];
        *side = if *side == "left" { "right" } else { "left" }.into();
    });
    change("the way", &|proof| drop(proof["proof"]["siblings"].as_array_mut().unwrap().pop()));
    change("the place", &|proof| {
        let index = proof["proof"]["leaf_index"].as_u64().unwrap();
        proof["proof"]["leaf_index"] = (index ^ 1).into();
    });
}
