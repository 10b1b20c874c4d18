//! Notifications that wait for a receiver: a manager, or the master agent. No IO.

use crate::notification::{MOST, Notification};
use cutline_sys::lock;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Notifications that wait for a receiver, the oldest first, [`MOST`] at most. If there are more, the oldest one of the
/// user with most of them is dropped: a receiver that was away for long needs the present state most, and no user takes the places of others.
#[derive(Debug)]
pub struct Outbox {
    /// The receiver, as messages name it.
    pub receiver: String,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Arc<Notification>>,
    dropped: u64,
}

impl Outbox {
    /// Returns an empty outbox.
    pub fn new(receiver: String) -> Self {
        Self { receiver, waiting: Mutex::default(), arrived: Notify::new() }
    }

    /// Adds a notification.
    pub fn put(&self, notification: Arc<Notification>) {
        let mut waiting = lock(&self.waiting);
        waiting.queue.push_back(notification);
        waiting.drop_beyond_most();
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Puts notifications back that were taken and not delivered, the oldest first. They come before all others.
    pub fn put_back(&self, notifications: impl DoubleEndedIterator<Item = Arc<Notification>>) {
        let mut waiting = lock(&self.waiting);
        notifications.rev().for_each(|notification| waiting.queue.push_front(notification));
        waiting.drop_beyond_most();
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Takes the oldest notification, once there is one. If the call is cancelled, none is lost.
    pub async fn take(&self) -> Arc<Notification> {
        loop {
            if let Some(notification) = lock(&self.waiting).queue.pop_front() {
                return notification;
            }
            self.arrived.notified().await;
        }
    }

    /// Returns the number of notifications that were dropped since the last call of this function.
    pub fn take_dropped(&self) -> u64 {
        std::mem::take(&mut lock(&self.waiting).dropped)
    }
}

impl Waiting {
    fn drop_beyond_most(&mut self) {
        while self.queue.len() > MOST {
            let mut of_users: BTreeMap<u32, usize> = BTreeMap::new();
            for notification in &self.queue {
                *of_users.entry(notification.uid).or_default() += 1;
            }
            let most = of_users.into_iter().max_by_key(|(_, number)| *number).map(|(uid, _)| uid);
            let oldest = self.queue.iter().position(|notification| Some(notification.uid) == most);
            self.queue.remove(oldest.unwrap_or_default());
            self.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_snmp::Oid;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn notification(number: u32) -> Arc<Notification> {
        of_user(1000, number)
    }

    fn of_user(uid: u32, uptime: u32) -> Arc<Notification> {
        Arc::new(Notification { kind: Oid::from_slice(&[1, 3]), uid, uptime, objects: Vec::new() })
    }

    /// Takes a notification; `None` if there is none.
    fn taken(outbox: &Outbox) -> Option<u32> {
        match pin!(outbox.take()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(notification) => Some(notification.uptime),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_oldest_gives_its_place_to_a_new_one() {
        let outbox = Outbox::new("manager".to_owned());
        for number in 0..MOST as u32 + 3 {
            outbox.put(notification(number));
        }
        assert_eq!((outbox.take_dropped(), outbox.take_dropped()), (3, 0));
        let all: Vec<u32> = std::iter::from_fn(|| taken(&outbox)).collect();
        assert!(all.iter().copied().eq(3..MOST as u32 + 3), "{all:?}");
    }

    #[test]
    fn a_user_takes_no_place_of_others() {
        let outbox = Outbox::new("manager".to_owned());
        outbox.put(of_user(0, 1));
        for number in 2..5000 {
            outbox.put(of_user(1000, number));
        }
        outbox.put(of_user(1001, 5000));
        let all: Vec<u32> = std::iter::from_fn(|| taken(&outbox)).collect();
        assert_eq!((all.len(), all[0], all[MOST - 1]), (MOST, 1, 5000));
    }

    #[test]
    fn undelivered_ones_come_first_where_there_is_room() {
        let outbox = Outbox::new("manager".to_owned());
        assert_eq!(taken(&outbox), None);
        outbox.put(notification(7));
        outbox.put_back([5, 6].map(notification).into_iter());
        assert_eq!(
            [taken(&outbox), taken(&outbox), taken(&outbox), taken(&outbox)],
            [Some(5), Some(6), Some(7), None]
        );
        for number in 1..MOST as u32 {
            outbox.put(notification(number));
        }
        outbox.put_back([5000, 6000].map(notification).into_iter());
        assert_eq!((outbox.take_dropped(), taken(&outbox), taken(&outbox)), (1, Some(6000), Some(1)));
    }
}
