//! Protocol server: dispatch of calls to tools, questions to the user, and cancellation.
//!
//! Calls run on threads of their own, so that one that waits for the user, or for a large tree, does not delay others.
//! At most one question is open at a time.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nono::request::Wait;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::answer::ToolAnswer;
use super::call::{self, McpCall, Stop};
use super::person::Client;
use super::tool::{NAMES, Tool};
use super::{catalogue, inside, outside, policy};
use crate::commands::checkpoints::inside::Outside;
use crate::failure::Failure;
use crate::host::host;

/// Maximum number of calls at the same time; others wait.
const WORKING: usize = 4;

/// Time that a cancelled call gets to end.
const LEAVING: Duration = Duration::from_secs(1);

/// Newest protocol version that has a connection from `initialize` to the end, in which a server can ask and wait.
/// Later ones leave the state of a question with the client.
const NEWEST: ProtocolVersion = ProtocolVersion::V_2025_11_25;

pub(super) struct Server {
    working: Arc<Semaphore>,
    asking: Arc<Semaphore>,
    /// True once the client is gone.
    closed: watch::Receiver<bool>,
    /// Whether something was stored, so that upkeep is due at the end.
    pub(super) stored: Arc<AtomicBool>,
}

impl Server {
    pub(super) fn new(closed: watch::Receiver<bool>) -> Server {
        Server {
            working: Arc::new(Semaphore::new(WORKING)),
            asking: Arc::new(Semaphore::new(1)),
            closed,
            stored: Arc::default(),
        }
    }

    /// Waits for a permit to work, or for the only permit to ask.
    async fn permit(&self, tool: &Tool) -> Result<OwnedSemaphorePermit, Failure> {
        if !tool.asks() {
            let permit = Arc::clone(&self.working).acquire_owned().await;
            return permit.map_err(|_| Failure::new("the server is ending"));
        }
        // A call that was just cancelled may still hold it.
        let permit = tokio::time::timeout(LEAVING, Arc::clone(&self.asking).acquire_owned()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| {
            Failure::refused("the person is being asked about another call")
                .hint("wait for the answer to that one, or cancel it")
        })
    }

    async fn answer(&self, tool: Tool, context: RequestContext<RoleServer>) -> Result<ToolAnswer, Failure> {
        let permit = self.permit(&tool).await?;
        let (stopper, stop) = call::stop()?;
        let person = Client::new(&context, self.closed.clone(), Handle::current());
        self.stored.fetch_or(matches!(tool, Tool::Create { .. } | Tool::Restore { .. }), Ordering::Relaxed);
        let mut work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            carry_out(tool, &person, &stop)
        });
        let done = tokio::select! {
            done = &mut work => done,
            () = context.ct.cancelled() => { drop(stopper); work.await }
            () = gone(self.closed.clone()) => { drop(stopper); work.await }
        };
        done.unwrap_or_else(|_| Err(Failure::new("the call failed unexpectedly")))
    }
}

/// Waits until the client is gone.
pub(super) async fn gone(mut closed: watch::Receiver<bool>) {
    // Without a sender there is no client either.
    let _ = closed.wait_for(|closed| *closed).await;
}

fn carry_out(tool: Tool, person: &Client, stop: &Stop) -> Result<ToolAnswer, Failure> {
    let call = &McpCall { person, stop };
    let host = host(None)?;
    let cwd = &host.context.cwd;
    match tool {
        Tool::WhyPath { path, operation, profile } => policy::of_path(&host, &path, operation, profile),
        Tool::WhyHost { host: name, port, profile } => policy::of_host(&host, &name, port, profile),
        tool if host.nested => {
            let socket = inside::socket()?;
            let wait = Wait { patience: None, until: Some(stop.fd()) };
            let outside = &Outside { socket: &socket, cwd, wait };
            match tool {
                Tool::List { limit } => inside::list(outside, limit),
                Tool::Diff { checkpoint, paths } => inside::diff(outside, &checkpoint, &paths),
                Tool::Create { reason } => inside::create(outside, reason),
                Tool::Restore { checkpoint, paths } => inside::restore(outside, checkpoint, &paths),
                Tool::Request { path, access, reason } => {
                    inside::request(outside, &policy::at_home(&host, &path), access, &reason)
                }
                _ => inside::changes(outside),
            }
        }
        Tool::List { limit } => outside::list(limit, call),
        Tool::Diff { checkpoint, paths } => outside::diff(&checkpoint, &paths, call),
        Tool::Create { reason } => outside::create(&reason, call),
        Tool::Restore { checkpoint, paths } => outside::restore(&checkpoint, &paths, call),
        Tool::Changes => outside::changes(call),
        Tool::Request { .. } => {
            Err(Failure::refused("there is no sandbox around this server, so there is no supervisor to ask")
                .hint("nono does not restrict access here: try it, or ask the user in the conversation"))
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = InitializeResult::new(ServerCapabilities::builder().enable_tools().build());
        info.protocol_version = NEWEST;
        info.server_info = Implementation::new("nono", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(catalogue::INSTRUCTIONS.to_owned());
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&NEWEST))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(catalogue::tools()))
    }

    /// Runs a tool. An unknown name is a protocol error; wrong arguments are a failed answer, which the model sees.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let Some(tool) = Tool::read(&request.name, arguments) else {
            let what = format!("there is no such tool; there are {}", NAMES.join(", "));
            return Err(ErrorData::invalid_params(what, None));
        };
        let answer = match tool {
            Ok(tool) => self.answer(tool, context).await,
            Err(failure) => Err(failure),
        };
        Ok(answer.unwrap_or_else(ToolAnswer::from).result().into())
    }
}
