//! Patches applied with git and patch: the result must be the other tree.

mod apply;
mod oracle;
mod random;
mod shown;
