//! Agent, subagent and notifications at work, in a thread of their own.

use crate::agent;
use crate::agentx;
use crate::error::{MessageSink, SnmpError};
use crate::front::Front;
use crate::notification::{MOST, Notification, Watch};
use crate::objects::HostObjects;
use crate::options::SnmpOptions;
use crate::outbox::Outbox;
use async_snmp::agent::Agent;
use cutline_monitor::MonitoredHost;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Interval at which rows are compared with those of before.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The most notifications that are being sent to a manager at a time; others wait in its outbox. While the manager is away, each lives for a
/// minute and a half.
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
                let parts = match start(&options, &objects, &say).await {
                    Ok(parts) => parts,
                    Err(error) => return drop(started.send(Err(error))),
                };
                let _waiting = started.send(Ok(parts.agent.as_ref().map(|(front, _)| front.address())));
                work(&options, objects, parts, stopped, say).await;
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

/// The parts that are at work.
struct Parts {
    /// The agent and the socket of its managers; `None` if the options have none.
    agent: Option<(Front, Agent)>,
    /// Agents that notify, each with the notifications for its manager.
    notifiers: Vec<(Agent, Arc<Outbox>)>,
}

/// Starts the agents.
async fn start(
    options: &SnmpOptions,
    objects: &Arc<HostObjects>,
    say: &MessageSink,
) -> Result<Parts, SnmpError> {
    let mut notifiers = Vec::with_capacity(options.managers.len());
    for manager in &options.managers {
        let outbox = Outbox::new(format!("manager {}", manager.address));
        notifiers.push((agent::notifier(options, manager).await?, Arc::new(outbox)));
    }
    let agent = match Front::bind(options)? {
        Some(front) => {
            let agent = agent::start(options, objects, &front, say).await?;
            Some((front, agent))
        }
        None => None,
    };
    Ok(Parts { agent, notifiers })
}

/// Serves until `stopped`.
async fn work(
    options: &SnmpOptions,
    objects: Arc<HostObjects>,
    Parts { agent, notifiers }: Parts,
    stopped: oneshot::Receiver<()>,
    say: MessageSink,
) {
    let (front, agent) = agent.unzip();
    let agent = agent.map(Arc::new);
    let answering = agent.clone().map(|agent| {
        tokio::spawn(async move {
            let _ended = agent.run().await;
        })
    });
    // They end when this set is dropped.
    let mut senders = JoinSet::new();
    let mut outboxes = Vec::new();
    if let Some(path) = options.agentx.clone() {
        let outbox = Arc::new(Outbox::new("the master agent".to_owned()));
        outboxes.push(Arc::clone(&outbox));
        let (objects, say) = (Arc::clone(&objects), Arc::clone(&say));
        senders.spawn(async move { agentx::serve(&path, &objects, &outbox, &*say).await });
    }
    for (notifier, outbox) in notifiers {
        outboxes.push(Arc::clone(&outbox));
        senders.spawn(notify(Arc::new(notifier), outbox, Arc::clone(&say)));
    }
    tokio::select! {
        () = watch(&objects, &outboxes, &say) => {}
        () = answer(front.as_ref(), agent.as_deref(), &say) => {}
        _ = stopped => {}
    }
    drop(senders);
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

/// Compares the rows each second, and puts notifications of changes into all outboxes.
async fn watch(objects: &HostObjects, outboxes: &[Arc<Outbox>], say: &MessageSink) {
    let mut watch = Watch::new(&objects.module);
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
            let notification = Arc::new(notification);
            for outbox in outboxes {
                outbox.put(Arc::clone(&notification));
            }
        }
        for outbox in outboxes {
            let (dropped, receiver) = (outbox.take_dropped(), &outbox.receiver);
            if dropped > 0 {
                say(format!("snmp: {dropped} notifications for {receiver} are dropped: {MOST} wait"));
            }
        }
    }
}

/// Sends the notifications for a manager, each again and again until the manager acknowledges it or the time is over. Never ends.
async fn notify(agent: Arc<Agent>, outbox: Arc<Outbox>, say: MessageSink) {
    let sending = Arc::new(Semaphore::new(MOST_SENDING));
    // Those that are being sent end with this one.
    let mut informs = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&sending).acquire_owned().await else { return };
        let notification = outbox.take().await;
        while informs.try_join_next().is_some() {}
        let (agent, say) = (Arc::clone(&agent), Arc::clone(&say));
        informs.spawn(async move {
            let Notification { kind, uptime, objects, .. } = &*notification;
            let outcome = agent.send_inform(kind, *uptime, objects.clone()).await;
            for failed in outcome.failures() {
                say(format!("snmp: manager {} has not acknowledged a notification", failed.sink.dest()));
            }
            drop(place);
        });
    }
}
