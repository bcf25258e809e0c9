//! Questions to the user through the client (`elicitation/create`), outside a sandbox, where no supervisor can ask.

use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams,
    ElicitationAction, ElicitationSchema, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::call::Agreement;
use super::server::gone;

/// Field of the answer that has to be true.
const CONFIRM: &str = "confirm";

pub(super) struct Client {
    /// None if the client cannot ask.
    peer: Option<Peer<RoleServer>>,
    cancelled: Box<dyn Fn() -> Cancelled + Send>,
    closed: watch::Receiver<bool>,
    handle: Handle,
}

type Cancelled = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

impl Client {
    pub(super) fn new(
        context: &RequestContext<RoleServer>,
        closed: watch::Receiver<bool>,
        handle: Handle,
    ) -> Client {
        let asks = context.client_capabilities().is_some_and(|client| shows_forms(&client));
        let token = context.ct.clone();
        Client {
            peer: asks.then(|| context.peer.clone()),
            cancelled: Box::new(move || Box::pin(token.clone().cancelled_owned())),
            closed,
            handle,
        }
    }

    /// Shows a message and waits for the answer. Everything but an explicit yes is a no. Blocks: called on a worker thread.
    pub(super) fn agrees(&self, message: &str) -> Agreement {
        match &self.peer {
            Some(peer) => self.handle.block_on(self.ask(peer, message)).unwrap_or(Agreement::No),
            None => Agreement::NoApprover,
        }
    }

    async fn ask(&self, peer: &Peer<RoleServer>, message: &str) -> Option<Agreement> {
        let schema = json!({
            "type": "object",
            "properties": {CONFIRM: {
                "type": "boolean",
                "title": "Restore this",
                "description": "Put these files back as shown",
                "default": false,
            }},
            "required": [CONFIRM],
        });
        let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
        let params = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message.to_owned(),
            requested_schema,
        };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        let asked = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok()?;
        let id = asked.id.clone();
        let answered = tokio::select! {
            answered = asked.await_response() => answered.ok()?,
            () = (self.cancelled)() => {
                let withdrawn = CancelledNotificationParam::new(Some(id), Some("not wanted any more".to_owned()));
                // The client may be gone.
                let _ = peer.notify_cancelled(withdrawn).await;
                return None;
            }
            () = gone(self.closed.clone()) => return None,
        };
        let ClientResult::ElicitResult(answer) = answered else { return None };
        let is_yes = answer.action == ElicitationAction::Accept
            && answer.content.is_some_and(|content| content[CONFIRM] == true);
        is_yes.then_some(Agreement::Yes)
    }
}

/// Whether the client shows forms; a client that names no kind does.
fn shows_forms(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|how| how.form.is_some() || how.url.is_none())
}
