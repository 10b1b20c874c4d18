//! Agent, subagent and notifications at work, in a thread of their own.

use crate::agent;
use crate::agentx;
use crate::error::{MessageSink, SnmpError};
use crate::front::Front;
use crate::notification::{MOST, Notification, Watch};
use crate::objects::HostObjects;
use crate::options::SnmpOptions;
use async_snmp::agent::Agent;
use cutline_monitor::MonitoredHost;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, broadcast, oneshot};
use tokio::time::{MissedTickBehavior, interval};

/// Interval at which rows are compared with those of before.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The most notifications that are being sent at a time. While a manager is away, each lives for a minute and a half.
const MOST_SENDING: usize = 256;

/// SNMP at work until it is dropped.
#[derive(Debug)]
pub struct SnmpService {
    address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SnmpService {
    /// Starts to serve the rows of a host. `say` gets a message when a master agent comes or goes, and when a manager does not acknowledge
    /// notifications.
    ///
    /// # Errors
    /// When the settings cannot be used, or the address cannot be listened at.
    pub fn start(
        options: &SnmpOptions,
        host: Arc<MonitoredHost>,
        say: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Self, SnmpError> {
        let objects = Arc::new(HostObjects::new(host, &options.system));
        let (stop, stopped) = oneshot::channel();
        let (started, is_started) = std::sync::mpsc::channel();
        let options = options.clone();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let say: MessageSink = Arc::new(say);
        let serve = move || {
            runtime.block_on(async {
                let agent = match start(&options, &objects, &say).await {
                    Ok(agent) => agent,
                    Err(error) => return drop(started.send(Err(error))),
                };
                let _waiting = started.send(Ok(agent.as_ref().map(|(front, _)| front.address())));
                work(&options, objects, agent, stopped, say).await;
            });
        };
        let thread = std::thread::Builder::new().name("snmp".to_owned()).spawn(serve)?;
        let address = is_started.recv().map_err(|_| SnmpError::Ended)??;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address of the agent; `None` if there is none.
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for SnmpService {
    fn drop(&mut self) {
        let _is_told = self.stop.take().map(|stop| stop.send(()));
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// Starts the agent and the socket of its managers; `None` if the options have none.
async fn start(
    options: &SnmpOptions,
    objects: &Arc<HostObjects>,
    say: &MessageSink,
) -> Result<Option<(Front, Agent)>, SnmpError> {
    let Some(front) = Front::bind(options)? else { return Ok(None) };
    let agent = agent::start(options, objects, &front, say).await?;
    Ok(Some((front, agent)))
}

/// Serves until `stopped`.
async fn work(
    options: &SnmpOptions,
    objects: Arc<HostObjects>,
    agent: Option<(Front, Agent)>,
    stopped: oneshot::Receiver<()>,
    say: MessageSink,
) {
    let (sender, _) = broadcast::channel(MOST);
    let (front, agent) = agent.unzip();
    let agent = agent.map(Arc::new);
    let answering = agent.clone().map(|agent| {
        tokio::spawn(async move {
            let _ended = agent.run().await;
        })
    });
    let subagent = options.agentx.clone().map(|path| {
        let (objects, sender, say) = (Arc::clone(&objects), sender.clone(), Arc::clone(&say));
        tokio::spawn(async move { agentx::serve(&path, &objects, &sender, &*say).await })
    });
    let has_managers = !options.managers.is_empty();
    let notified = agent.clone().filter(|_| has_managers);
    tokio::select! {
        () = watch(&objects, &sender, notified, &say) => {}
        () = answer(front.as_ref(), agent.as_deref(), &say) => {}
        _ = stopped => {}
    }
    if let Some(subagent) = subagent {
        subagent.abort();
    }
    if let Some(agent) = agent {
        agent.cancel();
    }
    if let Some(answering) = answering {
        // Requests that are being answered are few and short.
        let _done = tokio::time::timeout(LOOK_EVERY, answering).await;
    }
}

/// Serves managers through the agent. Never ends.
async fn answer(front: Option<&Front>, agent: Option<&Agent>, say: &MessageSink) {
    if let (Some(front), Some(agent)) = (front, agent) {
        let failed = tokio::select! {
            failed = front.serve(agent) => failed,
            () = front.report(say) => Ok(()),
        };
        if let Err(error) = failed {
            say(format!("snmp: requests are no longer answered: {error}; restart the monitor"));
        }
    }
    std::future::pending::<()>().await;
}

/// Compares the rows each second, and sends notifications of changes.
async fn watch(
    objects: &HostObjects,
    sender: &broadcast::Sender<Notification>,
    agent: Option<Arc<Agent>>,
    say: &MessageSink,
) {
    let mut watch = Watch::new(&objects.module);
    let sending = Arc::new(Semaphore::new(MOST_SENDING));
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let snapshot = objects.snapshot();
        let notifications = watch.look(&objects.module, &snapshot);
        let dropped = watch.take_dropped();
        if dropped > 0 {
            say(format!("snmp: {dropped} notifications are dropped: more than {MOST} were due in a second"));
        }
        for notification in notifications {
            if let Some(agent) = &agent {
                inform(agent, &notification, snapshot.uptime, &sending, say);
            }
            // Without a subagent it has no receiver.
            let _receivers = sender.send(notification);
        }
    }
}

/// Sends a notification to all managers, again and again until they acknowledge it or the time is over.
fn inform(
    agent: &Arc<Agent>,
    notification: &Notification,
    uptime: u32,
    sending: &Arc<Semaphore>,
    say: &MessageSink,
) {
    let Ok(place) = Arc::clone(sending).try_acquire_owned() else {
        say(format!("snmp: a notification is dropped: {MOST_SENDING} wait for managers to acknowledge them"));
        return;
    };
    let (agent, say) = (Arc::clone(agent), Arc::clone(say));
    let Notification { kind, objects } = notification.clone();
    tokio::spawn(async move {
        let outcome = agent.send_inform(&kind, uptime, objects).await;
        for failed in outcome.failures() {
            say(format!("snmp: manager {} has not acknowledged a notification", failed.sink.dest()));
        }
        drop(place);
    });
}
