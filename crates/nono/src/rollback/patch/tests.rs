//! git and patch are the judges: what they make of a patch is the other tree.

mod apply;
mod oracle;
mod random;
mod shown;
