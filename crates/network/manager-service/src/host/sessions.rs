//! Sessions of clients: begin, continuation and end, with the end of their flows.

use super::{HostSession, ManagedHost};
use crate::store::{Change, FlowPlace, SessionRecord};
use cutline_allocation::protocol::{AllocationReply, HeldFlow, VERSION};
use cutline_manager::resources::{ClientKey, FlowId, UserId, UserPolicy};
use cutline_sys::SysError;
use cutline_units::Instant;
use std::collections::BTreeMap;

impl ManagedHost {
    /// Begins or continues a session of a user's process. Returns its key and the greeting.
    ///
    /// # Errors
    /// When there are no random numbers, or the policy is not allowed.
    pub fn begin(
        &mut self,
        (user, pid): (u32, Option<u32>),
        policy: UserPolicy,
        token: Option<&str>,
    ) -> Result<(ClientKey, AllocationReply), SysError> {
        self.set_policies([(user, policy)]);
        let user = UserId(user);
        let known = token.and_then(|token| self.tokens.get(token)).copied();
        let known = known.filter(|key| self.sessions.get(key).is_some_and(|session| session.user == user));
        let key = match known {
            Some(key) => key,
            None => self.new_session(user)?,
        };
        let session = self.sessions.get_mut(&key).expect("the session is there");
        (session.pid, session.until) = (pid, None);
        let (token, held) = (session.token.clone(), session.flows.clone());
        let flows = held
            .into_iter()
            .filter_map(|(id, flow)| Some(HeldFlow { id, rate_bps: self.manager.granted(flow)?.as_bps() }));
        let flows = flows.collect();
        let lease_ms = self.spec.resources.lease.as_nanos() / 1_000_000;
        Ok((key, AllocationReply::Welcome { version: VERSION, session: token, lease_ms, flows }))
    }

    fn new_session(&mut self, user: UserId) -> Result<ClientKey, SysError> {
        let bytes: [u8; 16] =
            cutline_sys::random().map_err(|error| SysError::new("cannot get random numbers", error))?;
        let token = format!("{:032x}", u128::from_be_bytes(bytes));
        let key = ClientKey(self.next_key);
        self.next_key += 1;
        self.tokens.insert(token.clone(), key);
        self.changes.push(Change::Session(SessionRecord { key, token: token.clone(), user }));
        let (pid, flows, until, next_renewal) = (None, BTreeMap::new(), None, Instant::ZERO);
        self.sessions.insert(key, HostSession { token, user, pid, flows, until, next_renewal });
        Ok(key)
    }

    /// Ends a session, whose client has gone. All of its flows end.
    pub fn end(&mut self, key: ClientKey) {
        let Some(session) = self.sessions.remove(&key) else { return };
        self.tokens.remove(&session.token);
        for flow in self.manager.release_client(key) {
            self.forget(flow);
        }
        self.changes.push(Change::End(key));
    }

    /// Forgets a flow that has ended at the manager.
    pub(super) fn forget(&mut self, flow: FlowId) -> Option<FlowPlace> {
        self.kernel_classes.touch();
        let place = self.places.remove(&flow)?;
        if let Some(session) = self.sessions.get_mut(&place.key) {
            session.flows.remove(&place.id);
        }
        self.touched.remove(&flow);
        self.missed.remove(&flow);
        self.changes.push(Change::Gone(flow));
        Some(place)
    }
}
