//! Limits of the number of connections, of all users and of each user.

use super::access::User;
use crate::registry::of_all_users;
use cutline_sys::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The most connections at a time; a page has two. A quarter of them is for root.
const MOST: usize = 2048;
/// The most connections of a user other than root, and of all other hosts together.
const MOST_OF_USER: usize = 64;

/// Limiter of connections, which counts them by user.
#[derive(Debug, Default)]
pub struct ConnectionLimiter(Mutex<BTreeMap<User, usize>>);

/// Permit for a connection, which is returned when this is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    user: User,
}

impl ConnectionLimiter {
    /// Takes a permit for a user; `None` at a limit.
    pub fn take(self: &Arc<Self>, user: User) -> Option<ConnectionPermit> {
        let mut taken = lock(&self.0);
        let of_user = taken.get(&user).copied().unwrap_or_default();
        let is_root = user == User::Local(0);
        let most = if is_root { MOST } else { MOST_OF_USER };
        let of_root = taken.get(&User::Local(0)).copied().unwrap_or_default();
        let of_all = taken.values().sum::<usize>();
        let has_room = of_all < MOST && (is_root || of_all - of_root < of_all_users(MOST));
        if of_user >= most || !has_room {
            return None;
        }
        taken.insert(user, of_user + 1);
        drop(taken);
        Some(ConnectionPermit { limiter: Arc::clone(self), user })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = lock(&self.limiter.0);
        if let Some(of_user) = taken.get_mut(&self.user) {
            *of_user -= 1;
            if *of_user == 0 {
                taken.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_takes_no_place_of_others() {
        let limiter = Arc::new(ConnectionLimiter::default());
        let ann: Vec<ConnectionPermit> = std::iter::from_fn(|| limiter.take(User::Local(1000))).collect();
        assert_eq!(ann.len(), MOST_OF_USER);
        assert!(limiter.take(User::Local(1001)).is_some() && limiter.take(User::OfOtherHost).is_some());
        let root: Vec<ConnectionPermit> = std::iter::from_fn(|| limiter.take(User::Local(0))).collect();
        assert_eq!(root.len(), MOST - MOST_OF_USER);
        drop((ann, root));
        assert!(lock(&limiter.0).is_empty());
    }

    #[test]
    fn users_together_take_no_permit_of_root() {
        let limiter = Arc::new(ConnectionLimiter::default());
        let users = (1000..1100).flat_map(|uid| vec![User::Local(uid); MOST_OF_USER]);
        let taken: Vec<ConnectionPermit> = users.filter_map(|user| limiter.take(user)).collect();
        assert_eq!(taken.len(), MOST / 4 * 3);
        let root: Vec<ConnectionPermit> = std::iter::from_fn(|| limiter.take(User::Local(0))).collect();
        assert_eq!(root.len(), MOST / 4);
    }
}
