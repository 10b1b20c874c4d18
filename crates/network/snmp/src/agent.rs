//! The agent: its users and their views; and the agents that notify managers, one for each, so that none waits for another one.

use crate::engine;
use crate::error::{MessageSink, SnmpError};
use crate::front::{CurrentManager, Front, INNER};
use crate::mib::{OBJECTS, ROOT};
use crate::objects::HostObjects;
use crate::options::{ManagerCredentials, SnmpManager, SnmpOptions, SnmpUser, Views, secret};
use crate::standard::{intsrv, rsvp};
use crate::table::Module;
use async_snmp::agent::{Agent, AgentBuilder, NotificationSinkId, VacmBuilder, View};
use async_snmp::client::{Auth, Retry};
use async_snmp::handler::{
    BoxFuture, GetNextResult, GetResult, HandlerResult, MibHandler, PreparedSet, RequestContext,
    SecurityModel, SetCommitError, SetCommitResult, SetTestResult, SetUndoResult,
};
use async_snmp::v3::UsmUser;
use async_snmp::{Oid, SecurityLevel, UsmConfig, Value, VarBind};
use cutline_monitor::PublisherId;
use cutline_publish::ManagerRequest;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Community that may read totals and queues at this host, if no other one is chosen.
const PUBLIC: &str = "public";
/// Names of the modules about the state of the agent (SNMP-FRAMEWORK-MIB, SNMP-MPD-MIB, SNMP-USER-BASED-SM-MIB).
const SNMP_MODULES: &[u32] = &[1, 3, 6, 1, 6, 3];
/// Groups of CUTLINE-QOS-MIB that have nothing of single programs.
const QUEUE_GROUPS: [u32; 5] = [1, 8, 9, 10, 11];
/// Time that a manager may take to acknowledge a notification.
const INFORM_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of times that a notification is sent again.
const INFORM_RETRIES: u32 = 5;

/// Objects below one name, as the agent requests them.
struct Handler {
    objects: Arc<HostObjects>,
    root: Vec<u32>,
    manager: Arc<CurrentManager>,
    say: MessageSink,
}

/// A change that all of its request's other changes must be possible for: it takes effect when they are.
struct Change {
    objects: Arc<HostObjects>,
    publisher: PublisherId,
    request: ManagerRequest,
    manager: Arc<CurrentManager>,
    say: MessageSink,
}

impl PreparedSet for Change {
    fn commit<'a>(
        &'a mut self,
        _: &'a RequestContext,
        _: &'a Oid,
        _: &'a Value,
    ) -> BoxFuture<'a, SetCommitResult> {
        let is_there = self.objects.host.has_publisher(self.publisher);
        Box::pin(async move { if is_there { Ok(()) } else { Err(SetCommitError::Failed) } })
    }

    fn undo<'a>(
        &'a mut self,
        _: &'a RequestContext,
        _: &'a Oid,
        _: &'a Value,
    ) -> BoxFuture<'a, SetUndoResult> {
        // Nothing has been sent yet.
        Box::pin(async { Ok(()) })
    }

    fn finalize<'a>(
        &'a mut self,
        context: &'a RequestContext,
        name: &'a Oid,
        value: &'a Value,
    ) -> BoxFuture<'a, ()> {
        let sent = self.objects.host.request(self.publisher, &self.request);
        let outcome = sent.map_or_else(|error| format!("failed: {error}"), |()| "passed on".to_owned());
        let user = String::from_utf8_lossy(context.security_name().as_bytes()).into_owned();
        // The agent itself knows of no other host than this one.
        let at = self.manager.address().unwrap_or_else(|| context.source().ip());
        (self.say)(format!("snmp: user {user} at {at} sets {name} to {value}: {outcome}"));
        Box::pin(async {})
    }
}

impl MibHandler for Handler {
    fn test_set<'a>(
        &'a self,
        _: &'a RequestContext,
        name: &'a Oid,
        value: &'a Value,
    ) -> BoxFuture<'a, SetTestResult> {
        let change = self.objects.request(name.arcs(), value).map(|(publisher, request)| {
            let (objects, say) = (Arc::clone(&self.objects), Arc::clone(&self.say));
            let manager = Arc::clone(&self.manager);
            Box::new(Change { objects, publisher, request, manager, say }) as Box<dyn PreparedSet>
        });
        Box::pin(async move { change })
    }

    fn get<'a>(&'a self, _: &'a RequestContext, name: &'a Oid) -> BoxFuture<'a, HandlerResult<GetResult>> {
        let found = match self.objects.get(name.arcs()) {
            Ok(Some(value)) => GetResult::Value(value),
            Ok(None) => GetResult::NoSuchInstance,
            Err(_) => GetResult::NoSuchObject,
        };
        Box::pin(async move { Ok(found) })
    }

    fn get_next<'a>(
        &'a self,
        _: &'a RequestContext,
        name: &'a Oid,
    ) -> BoxFuture<'a, HandlerResult<GetNextResult>> {
        let found = self.objects.next(&self.root, name.arcs());
        let found = found.map_or(GetNextResult::EndOfMibView, |(name, value)| {
            GetNextResult::Value(VarBind::new(Oid::new(name), value))
        });
        Box::pin(async move { Ok(found) })
    }
}

/// Starts an agent that gets its requests from `front`.
///
/// # Errors
/// When a secret or the identity cannot be used, or there is no address for its own socket.
pub async fn start(
    options: &SnmpOptions,
    objects: &Arc<HostObjects>,
    front: &Front,
    say: &MessageSink,
) -> Result<Agent, SnmpError> {
    let mut builder = Agent::builder().bind(SocketAddr::from(INNER).to_string());
    let communities = communities(options)?;
    for (community, _) in &communities {
        builder = builder.community(community.as_str());
    }
    for user in &options.users {
        builder = add_user(builder, user)?;
    }
    if !options.users.is_empty() {
        builder = builder.authoritative_engine(engine::start(&options.state)?);
    }
    for Module { root, .. } in objects.modules() {
        let manager = front.current();
        let handler =
            Handler { objects: Arc::clone(objects), root: root.clone(), manager, say: Arc::clone(say) };
        builder = builder.handler(Oid::from_slice(root), Arc::new(handler));
    }
    let agent = builder.vacm(|vacm| views(vacm, options, &communities, &objects.module)).build().await;
    agent.map_err(|error| SnmpError::Listen { address: INNER.into(), why: error.to_string() })
}

/// Starts an agent that notifies one manager, and answers nothing.
///
/// # Errors
/// When a secret cannot be used, or there is no address for its socket.
pub async fn notifier(options: &SnmpOptions, manager: &SnmpManager) -> Result<Agent, SnmpError> {
    let wrong = |name: &str, why: String| SnmpError::User { name: name.to_owned(), why };
    let mut builder = Agent::builder()
        .bind(SocketAddr::from(INNER).to_string())
        .inform_timeout(INFORM_TIMEOUT)
        .inform_retry(retries());
    let (auth, name, sees) = match &manager.credentials {
        ManagerCredentials::Community(file) => {
            let community = secret(file, false)?;
            let rights = (SecurityModel::V2c, SecurityLevel::NoAuthNoPriv);
            (Auth::v2c(community.clone()), community, (rights, Views::All))
        }
        ManagerCredentials::User(name) => {
            let user = options.users.iter().find(|user| user.name == *name);
            let user = user.ok_or_else(|| wrong(name, "there is no such user".to_owned()))?;
            builder = builder.authoritative_engine(engine::of_notifier()?);
            let rights = (SecurityModel::Usm, level(user));
            (Auth::Usm(credentials(user)?), name.clone(), (rights, user.sees))
        }
    };
    let ((model, level), views) = sees;
    let id = NotificationSinkId::new("manager").map_err(|error| wrong(&name, error.to_string()))?;
    builder = builder.trap_sink(id, manager.address.to_string(), auth).vacm(|vacm| {
        let notified = view_name(views);
        let vacm = vacm.view(notified, |view| included(views).into_iter().fold(view, View::include));
        let vacm = vacm.group(name, model, "manager".to_owned());
        vacm.access("manager".to_owned(), model, level, |access| access.notify_view(notified))
    });
    let agent = builder.build().await;
    agent.map_err(|error| SnmpError::Listen { address: INNER.into(), why: error.to_string() })
}

/// Returns the times at which a notification is sent again: about one and a half minutes in all.
fn retries() -> Retry {
    let retry = Retry::exponential(INFORM_RETRIES);
    let retry = retry.initial_delay(Duration::from_secs(1)).max_delay(Duration::from_secs(20)).build();
    retry.unwrap_or_default()
}

/// Returns the communities that may read, each with its view. Other hosts need a user.
fn communities(options: &SnmpOptions) -> Result<Vec<(String, Views)>, SnmpError> {
    if options.is_open() {
        return Ok(Vec::new());
    }
    let public = (PUBLIC.to_owned(), Views::Queues);
    let Some(file) = &options.community_file else { return Ok(vec![public]) };
    Ok(vec![(secret(file, false)?, Views::All)])
}

fn add_user(builder: AgentBuilder, user: &SnmpUser) -> Result<AgentBuilder, SnmpError> {
    let auth = secret(&user.auth_file, true)?;
    let privacy = user.privacy_file.as_deref().map(|file| secret(file, true)).transpose()?;
    let configure = |of: UsmUser| match &privacy {
        Some(privacy) => of.auth_priv(user.auth, auth.as_bytes(), user.privacy, privacy.as_bytes()),
        None => of.auth(user.auth, auth.as_bytes()),
    };
    let added = builder.usm_user(user.name.clone(), configure);
    added.map_err(|error| SnmpError::User { name: user.name.clone(), why: error.to_string() })
}

/// Returns the credentials of a user at a manager.
fn credentials(user: &SnmpUser) -> Result<UsmConfig, SnmpError> {
    let auth = secret(&user.auth_file, true)?;
    let privacy = user.privacy_file.as_deref().map(|file| secret(file, true)).transpose()?;
    let config = UsmConfig::new(user.name.clone());
    let config = match privacy {
        Some(privacy) => config.auth_priv(user.auth, auth, user.privacy, privacy),
        None => config.auth(user.auth, auth),
    };
    config.map_err(|error| SnmpError::User { name: user.name.clone(), why: error.to_string() })
}

/// Returns the name of a view, of the group that has it, and of the group that has it with encryption.
const fn view_name(views: Views) -> &'static str {
    match views {
        Views::All => "all",
        Views::Queues => "queues",
    }
}

/// Name of the view of writable objects.
const LIMITS: &str = "limits";

/// Returns the names that a view includes.
fn included(views: Views) -> Vec<Oid> {
    let common = ["1.3.6.1.2.1.1".to_owned(), dotted(SNMP_MODULES)];
    let common: Vec<Oid> = common.iter().filter_map(|name| Oid::parse(name).ok()).collect();
    let own = match views {
        Views::All => [ROOT, rsvp::ROOT, intsrv::ROOT].map(Oid::from_slice).to_vec(),
        Views::Queues => {
            let group = |group: u32| Oid::from_slice(&[ROOT, &[OBJECTS, group]].concat());
            QUEUE_GROUPS.map(group).to_vec()
        }
    };
    [common, own].concat()
}

/// Returns the security level of a user's messages.
const fn level(user: &SnmpUser) -> SecurityLevel {
    if user.privacy_file.is_some() { SecurityLevel::AuthPriv } else { SecurityLevel::AuthNoPriv }
}

/// Adds the rights to read and to set objects (VACM, RFC 3415).
fn views(
    vacm: VacmBuilder,
    options: &SnmpOptions,
    communities: &[(String, Views)],
    of: &Module,
) -> VacmBuilder {
    let mut vacm = [Views::All, Views::Queues].into_iter().fold(vacm, |vacm, views| {
        vacm.view(view_name(views), |view| included(views).into_iter().fold(view, View::include))
    });
    vacm = vacm.view(LIMITS, |view| writable(of).into_iter().fold(view, View::include));
    for (number, (community, sees)) in communities.iter().enumerate() {
        let group = format!("community-{number}");
        let level = SecurityLevel::NoAuthNoPriv;
        vacm = vacm.group(community.to_owned(), SecurityModel::V2c, group.clone()).access(
            group,
            SecurityModel::V2c,
            level,
            |access| access.read_view(view_name(*sees)),
        );
    }
    for user in &options.users {
        let group = format!("user-{}", user.name);
        vacm = vacm.group(user.name.clone(), SecurityModel::Usm, group.clone()).access(
            group,
            SecurityModel::Usm,
            level(user),
            |access| {
                let access = access.read_view(view_name(user.sees));
                if user.may_set { access.write_view(LIMITS) } else { access }
            },
        );
    }
    vacm
}

/// Returns the names of the objects that managers may set.
fn writable(module: &Module) -> Vec<Oid> {
    let names = module.groups.iter().flat_map(|group| {
        let writable = group.writable();
        let objects =
            group.objects().into_iter().filter(move |object| writable.contains(&object.name.as_str()));
        let arc = group.definition().arc;
        objects.map(move |object| [arc, 1, object.arc])
    });
    names.map(|below| Oid::from_slice(&[module.root.as_slice(), &below].concat())).collect()
}

fn dotted(arcs: &[u32]) -> String {
    arcs.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}
