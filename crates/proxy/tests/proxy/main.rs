//! The proxy from outside. `guards` is a program of its own: it counts what its process holds.

mod corpus;
mod credential;
mod wire;
