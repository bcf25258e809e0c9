//! Runs hostile children with and without nono and compares.

pub(crate) mod attack;
mod binaries;
pub(crate) mod child;
pub(crate) mod fixture;
mod verdicts;
pub(crate) mod world;

pub(crate) use attack::{Attack, Mode, attack, check};
pub(crate) use binaries::controls_only;

/// One `#[test]` for each line; a line may have several variants of the attack.
macro_rules! attacks {
    ($($(#[$attr:meta])* $name:ident: $($attack:expr),+;)*) => {
        $($(#[$attr])* #[test] fn $name() { $crate::harness::check(&[$($attack),+]); })*
    };
}
pub(crate) use attacks;
