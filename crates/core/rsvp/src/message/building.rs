//! Writing the objects of a message, in the recommended order.

use super::{Body, Descriptor};
use crate::intserv::Tspec;
use crate::object::{Sender, class, put, put_confirm, put_scope, put_time};

impl Body {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        match self {
            Self::Unread(_, objects) => objects.iter().for_each(|object| object.put(to)),
            Self::Path(path) => {
                path.session.put(to, path.polices_entry);
                path.hop.put(to);
                put_time(to, path.refresh);
                path.policy.iter().for_each(|policy| policy.put(to));
                put_sender(to, &path.sender, Some(&path.tspec));
                if let Some(adspec) = &path.adspec {
                    put(to, class::ADSPEC, 2, |to| to.extend(adspec.encode()));
                }
            }
            Self::PathTear(tear) => {
                tear.session.put(to, false);
                tear.hop.put(to);
                put_sender(to, &tear.sender, tear.tspec.as_ref());
            }
            Self::PathErr(error) => {
                error.session.put(to, false);
                error.error.put(to);
                error.policy.iter().for_each(|policy| policy.put(to));
                put_sender(to, &error.sender, error.tspec.as_ref());
            }
            Self::Resv(resv) => {
                resv.session.put(to, false);
                resv.hop.put(to);
                put_time(to, resv.refresh);
                if let Some(receiver) = resv.confirm {
                    put_confirm(to, receiver);
                }
                put_scope(to, resv.scope.as_deref().unwrap_or_default());
                resv.policy.iter().for_each(|policy| policy.put(to));
                resv.style.put(to);
                put_flows(to, &resv.flows);
            }
            Self::ResvTear(tear) => {
                tear.session.put(to, false);
                tear.hop.put(to);
                tear.style.put(to);
                put_flows(to, &tear.flows);
            }
            Self::ResvErr(error) => {
                error.session.put(to, false);
                error.hop.put(to);
                error.error.put(to);
                put_scope(to, error.scope.as_deref().unwrap_or_default());
                error.policy.iter().for_each(|policy| policy.put(to));
                error.style.put(to);
                put_flows(to, error.flow.as_slice());
            }
            Self::ResvConf(confirmation) => {
                confirmation.session.put(to, false);
                confirmation.error.put(to);
                put_confirm(to, confirmation.receiver);
                confirmation.style.put(to);
                put_flows(to, &confirmation.flows);
            }
            Self::Bundle(messages) => messages.iter().for_each(|message| to.extend(message)),
            Self::Ack => {}
            Self::Srefresh(lists) => lists.iter().for_each(|list| list.put(to)),
            Self::IntegrityChallenge(challenge) | Self::IntegrityResponse(challenge) => challenge.put(to),
        }
    }
}

fn put_sender(to: &mut Vec<u8>, sender: &Sender, tspec: Option<&Tspec>) {
    sender.put(to, class::SENDER_TEMPLATE);
    if let Some(tspec) = tspec {
        put(to, class::SENDER_TSPEC, 2, |to| to.extend(tspec.encode()));
    }
}

fn put_flows(to: &mut Vec<u8>, flows: &[Descriptor]) {
    for Descriptor { flowspec, filters } in flows {
        if let Some(flowspec) = flowspec {
            put(to, class::FLOWSPEC, 2, |to| to.extend(flowspec.encode()));
        }
        for sender in filters {
            sender.put(to, class::FILTER_SPEC);
        }
    }
}
