//! Each detail of the rules by itself; git as the judge of all together is in `tests/ignore_oracle.rs`.
