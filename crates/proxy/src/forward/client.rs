//! The client while its server thinks.

use std::future::pending;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::buffered::Buffered;

/// Wait until the client ends. One that says more is there, and is heard when its turn comes. A client that ends its side
/// only cannot be told from one that has left, and is taken for it, as other proxies do.
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
