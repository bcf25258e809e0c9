//! Terminal: nothing may be typed into it, and no other terminal may be opened.

use crate::harness::fixture::helper;
use crate::harness::{Attack, attack, attacks};

/// `EIO` is the answer where `dev.tty.legacy_tiocsti` is off.
fn on_terminal(steps: &'static str) -> Attack {
    attack(steps).on_tty().lacks(&["EIO"])
}

attacks! {
    typing_ahead:
        on_terminal("type stdin narrow"),
        on_terminal("type tty narrow");
    typing_ahead_by_a_wide_request:
        on_terminal("type stdin wide"),
        on_terminal("type tty wide");
    pasting:
        on_terminal("paste stdin narrow"),
        on_terminal("paste tty wide");
    another_terminal: attack("other-tty {tty}").changes().against(helper("host-tty"));
}
