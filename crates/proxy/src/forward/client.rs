//! Watching for a client that leaves before the response.

use std::future::pending;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::buffered::Buffered;

/// Waits until the client ends its side. A client that sends more is still there, and is read later. A client that only
/// shuts down its sending side cannot be distinguished from one that left, and is treated as such, as other proxies do.
pub(super) async fn left<C: AsyncRead + Unpin>(client: &mut Buffered<C>) {
    let mut byte = [0];
    if client.is_empty() && !matches!(client.stream.read(&mut byte).await, Ok(1..)) {
        return;
    }
    if client.is_empty() {
        client.put(byte.to_vec());
    }
    pending::<()>().await;
}
