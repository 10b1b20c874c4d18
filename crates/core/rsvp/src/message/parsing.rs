//! Parsing of the objects of a message, and the treatment of unknown ones.

use super::{
    Body, DecodeError, Descriptor, MessageType, Objects, Path, PathErr, PathTear, RejectedMessage, Resv,
    ResvConf, ResvErr, ResvTear,
};
use crate::intserv::{Adspec, Flowspec, Tspec};
use crate::object::{
    Acknowledgement, Challenge, ErrorSpec, Hop, IdList, MessageId, Opaque, Selector, Sender, Session, Style,
    class, code, read_confirm, read_scope, read_time,
};
use cutline_units::Duration;
use std::net::IpAddr;

/// An item of a flow descriptor list.
#[derive(Clone, Copy)]
enum FlowItem {
    Flowspec(Flowspec),
    Filter(Sender),
}

/// The most objects of a message that an error about it repeats: of a Resv message, those of the first sender.
const MOST_NAMED: usize = 3;

/// The objects of a message, by class.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) acknowledgements: Vec<Acknowledgement>,
    pub(super) id: Option<MessageId>,
    pub(super) passed_on: Vec<Opaque>,
    session: Option<(Session, bool)>,
    hop: Option<Hop>,
    refresh: Option<Duration>,
    error: Option<ErrorSpec>,
    scope: Option<Vec<IpAddr>>,
    style: Option<Style>,
    confirm: Option<IpAddr>,
    policy: Vec<Opaque>,
    flows: Vec<FlowItem>,
    sender: Option<Sender>,
    tspec: Option<Tspec>,
    adspec: Option<Adspec>,
    lists: Vec<IdList>,
    challenge: Option<Challenge>,
    /// The first object that is not known: code and value of the error.
    unknown: Option<(u8, u16)>,
    /// The objects that an error is about, if it is one about an object that is not known.
    named: Vec<Opaque>,
}

impl Parts {
    /// Reads the objects.
    pub(super) fn collect(&mut self, objects: &[u8]) -> Result<(), DecodeError> {
        for (at, object) in Objects(objects).enumerate() {
            let (class, object_kind, content) = object?;
            if class == class::INTEGRITY {
                // RFC 2205 section 3.1.3: it follows the header at once.
                if at > 0 {
                    return Err(DecodeError::Malformed("INTEGRITY is not the first object"));
                }
                continue;
            }
            self.object(class, object_kind, content)?;
        }
        // RFC 2205 section 3.10: an error has them as they came.
        if self.unknown.is_some() {
            let named = Objects(objects).flatten().filter(|(class, ..)| {
                matches!(*class, class::SESSION | class::STYLE | class::SENDER_TEMPLATE | class::FILTER_SPEC)
            });
            let named = named.map(|(class, kind, content)| Opaque { class, kind, content: content.into() });
            self.named = named.take(MOST_NAMED).collect();
        }
        Ok(())
    }

    fn object(&mut self, class: u8, kind: u8, content: &[u8]) -> Result<(), DecodeError> {
        const MALFORMED: DecodeError = DecodeError::Malformed("the content of an object is not possible");
        let known_kinds = match class {
            class::SESSION | class::RSVP_HOP | class::ERROR_SPEC | class::SCOPE | class::RESV_CONFIRM => {
                1..=2
            }
            class::FILTER_SPEC | class::SENDER_TEMPLATE => 1..=3,
            class::TIME_VALUES | class::STYLE | class::MESSAGE_ID | class::CHALLENGE => 1..=1,
            class::FLOWSPEC | class::SENDER_TSPEC | class::ADSPEC => 2..=2,
            class::MESSAGE_ID_ACK => 1..=2,
            class::MESSAGE_ID_LIST => 1..=5,
            _ => 0..=u8::MAX,
        };
        if !known_kinds.contains(&kind) {
            self.refuse(code::UNKNOWN_TYPE, u16::from_be_bytes([class, kind]));
            return Ok(());
        }
        match class {
            class::NULL => {}
            class::SESSION => once(&mut self.session, Session::read(kind, content).ok_or(MALFORMED)?)?,
            class::RSVP_HOP => once(&mut self.hop, Hop::read(kind, content).ok_or(MALFORMED)?)?,
            class::TIME_VALUES => once(&mut self.refresh, read_time(content).ok_or(MALFORMED)?)?,
            class::ERROR_SPEC => once(&mut self.error, ErrorSpec::read(kind, content).ok_or(MALFORMED)?)?,
            class::SCOPE => once(&mut self.scope, read_scope(kind, content).ok_or(MALFORMED)?)?,
            class::STYLE => once(&mut self.style, Style::read(content).ok_or(MALFORMED)?)?,
            class::RESV_CONFIRM => once(&mut self.confirm, read_confirm(kind, content).ok_or(MALFORMED)?)?,
            class::SENDER_TEMPLATE => once(&mut self.sender, Sender::read(kind, content).ok_or(MALFORMED)?)?,
            class::FILTER_SPEC => {
                self.flows.push(FlowItem::Filter(Sender::read(kind, content).ok_or(MALFORMED)?));
            }
            class::FLOWSPEC => match Flowspec::decode(content) {
                Some(flowspec) => self.flows.push(FlowItem::Flowspec(flowspec)),
                None => self.refuse(code::TRAFFIC_CONTROL, code::BAD_FLOWSPEC),
            },
            class::SENDER_TSPEC => match Tspec::decode(content) {
                Some(tspec) => once(&mut self.tspec, tspec)?,
                None => self.refuse(code::TRAFFIC_CONTROL, code::BAD_TSPEC),
            },
            class::ADSPEC => match Adspec::decode(content) {
                Some(adspec) => once(&mut self.adspec, adspec)?,
                None => self.refuse(code::TRAFFIC_CONTROL, code::BAD_ADSPEC),
            },
            class::POLICY_DATA => self.policy.push(Opaque { class, kind, content: content.into() }),
            class::MESSAGE_ID => once(&mut self.id, MessageId::read(content).ok_or(MALFORMED)?)?,
            class::MESSAGE_ID_ACK => {
                self.acknowledgements.push(Acknowledgement::read(kind, content).ok_or(MALFORMED)?);
            }
            class::MESSAGE_ID_LIST => self.lists.push(IdList::read(kind, content).ok_or(MALFORMED)?),
            class::CHALLENGE => once(&mut self.challenge, Challenge::read(content).ok_or(MALFORMED)?)?,
            // RFC 2205 section 3.10: refused, ignored, or passed on, by the two upper bits.
            0b1100_0000.. => self.passed_on.push(Opaque { class, kind, content: content.into() }),
            0b1000_0000.. => {}
            _ => self.refuse(code::UNKNOWN_CLASS, u16::from_be_bytes([class, kind])),
        }
        Ok(())
    }

    fn refuse(&mut self, code: u8, value: u16) {
        self.unknown.get_or_insert((code, value));
    }

    /// Returns the body of a message of this type.
    pub(super) fn body(&mut self, kind: MessageType) -> Result<Body, DecodeError> {
        self.check_addresses()?;
        if let Some((code, value)) = self.unknown {
            return Err(self.refused(kind, code, value));
        }
        let missing = DecodeError::Malformed;
        let session = || self.session.ok_or(missing("SESSION is missing"));
        let hop = self.hop.ok_or(missing("RSVP_HOP is missing"));
        let refresh = self.refresh.ok_or(missing("TIME_VALUES is missing"));
        let sender = self.sender.ok_or(missing("SENDER_TEMPLATE is missing"));
        let error = self.error.ok_or(missing("ERROR_SPEC is missing"));
        let style = self.style.ok_or(missing("STYLE is missing"));
        let challenge = self.challenge.ok_or(missing("CHALLENGE is missing"));
        let policy = std::mem::take(&mut self.policy);
        let (tspec, scope) = (self.tspec, self.scope.take());
        Ok(match kind {
            MessageType::Path => {
                let (session, polices_entry) = session()?;
                let tspec = tspec.ok_or(missing("SENDER_TSPEC is missing"))?;
                let (hop, refresh, sender) = (hop?, refresh?, sender?);
                let adspec = self.adspec.take();
                Body::Path(Path { session, polices_entry, hop, refresh, policy, sender, tspec, adspec })
            }
            MessageType::PathTear => {
                Body::PathTear(PathTear { session: session()?.0, hop: hop?, sender: sender?, tspec })
            }
            MessageType::PathErr => Body::PathErr(PathErr {
                session: session()?.0,
                error: error?,
                policy,
                sender: sender?,
                tspec,
            }),
            MessageType::Resv => {
                let style = style?;
                let flows = self.descriptors(style, true)?;
                let (session, hop, refresh, confirm) = (session()?.0, hop?, refresh?, self.confirm);
                Body::Resv(Resv { session, hop, refresh, confirm, scope, policy, style, flows })
            }
            MessageType::ResvTear => {
                let style = style?;
                let flows = self.descriptors(style, false)?;
                Body::ResvTear(ResvTear { session: session()?.0, hop: hop?, style, flows })
            }
            MessageType::ResvErr => {
                let style = style?;
                let flow = match &self.flows[..] {
                    [] => None,
                    _ => self.descriptors(style, true)?.pop(),
                };
                Body::ResvErr(ResvErr {
                    session: session()?.0,
                    hop: hop?,
                    error: error?,
                    scope,
                    policy,
                    style,
                    flow,
                })
            }
            MessageType::ResvConf => {
                let (style, receiver) = (style?, self.confirm.ok_or(missing("RESV_CONFIRM is missing"))?);
                let flows = self.descriptors(style, true)?;
                Body::ResvConf(ResvConf { session: session()?.0, error: error?, receiver, style, flows })
            }
            MessageType::Ack if self.acknowledgements.is_empty() => {
                return Err(missing("MESSAGE_ID_ACK is missing"));
            }
            MessageType::Ack if self.id.is_some() => return Err(missing("a number in an Ack message")),
            MessageType::Ack => Body::Ack,
            MessageType::Srefresh if self.lists.is_empty() => {
                return Err(missing("MESSAGE_ID_LIST is missing"));
            }
            MessageType::Srefresh => Body::Srefresh(std::mem::take(&mut self.lists)),
            MessageType::IntegrityChallenge => Body::IntegrityChallenge(challenge?),
            MessageType::IntegrityResponse => Body::IntegrityResponse(challenge?),
            MessageType::Bundle => unreachable!("a bundle has messages, and no objects"),
        })
    }

    /// Every address must be of the version of the session's, and ports follow RFC 2205 section 3.2.
    fn check_addresses(&self) -> Result<(), DecodeError> {
        let Some((session, _)) = self.session else { return Ok(()) };
        let filters = self.flows.iter().filter_map(|item| match item {
            FlowItem::Filter(sender) => Some(*sender),
            FlowItem::Flowspec(_) => None,
        });
        let senders: Vec<Sender> = filters.chain(self.sender).collect();
        let addresses = senders.iter().map(|sender| sender.address);
        let addresses = addresses.chain(self.hop.map(|hop| hop.address)).chain(self.confirm);
        let mut addresses = addresses.chain(self.scope.iter().flatten().copied());
        let is_v4 = session.destination.is_ipv4();
        if addresses.any(|address| address.is_ipv4() != is_v4) {
            return Err(DecodeError::Malformed("addresses of both versions of IP"));
        }
        let has_port = |sender: &Sender| !matches!(sender.selector, Selector::Port(0));
        if session.port == 0 && senders.iter().any(has_port) {
            return Err(DecodeError::Malformed("a source port in a session without ports"));
        }
        Ok(())
    }

    /// The error for a Path or Resv message that is not understood. Other messages cause no error.
    fn refused(&self, kind: MessageType, code: u8, value: u16) -> DecodeError {
        let has_session = self.session.is_some() || self.named.iter().any(|its| its.class == class::SESSION);
        match (kind, self.hop) {
            (MessageType::Path | MessageType::Resv, Some(hop)) if has_session => {
                let session = self.session.map(|(session, _)| session);
                let (sender, style, named) = (self.sender, self.style, self.named.clone());
                DecodeError::Rejected(Box::new(RejectedMessage {
                    code,
                    value,
                    kind,
                    session,
                    named,
                    hop,
                    sender,
                    style,
                }))
            }
            _ => DecodeError::Malformed("an object that is not known"),
        }
    }

    /// Puts the flow descriptors together (RFC 2205 section 3.1.4).
    fn descriptors(&self, style: Style, needs_flowspec: bool) -> Result<Vec<Descriptor>, DecodeError> {
        let wrong = Err(DecodeError::Malformed("the flow descriptors are not those of the style"));
        let mut flows: Vec<Descriptor> = Vec::new();
        let mut flowspec = None;
        let mut filters = Vec::new();
        for item in &self.flows {
            match (style, item) {
                (Style::FixedFilter, FlowItem::Flowspec(found)) => flowspec = Some(*found),
                // A flowspec that is left out is that of the flow before.
                (Style::FixedFilter, FlowItem::Filter(sender)) => {
                    flows.push(Descriptor { flowspec, filters: vec![*sender] });
                }
                (_, FlowItem::Flowspec(_)) if flowspec.is_some() || !filters.is_empty() => return wrong,
                (_, FlowItem::Flowspec(found)) => flowspec = Some(*found),
                (Style::WildcardFilter, FlowItem::Filter(_)) => return wrong,
                (_, FlowItem::Filter(sender)) => filters.push(*sender),
            }
        }
        match style {
            Style::FixedFilter if flows.is_empty() => return wrong,
            Style::FixedFilter => {}
            Style::SharedExplicit if filters.is_empty() => return wrong,
            _ => flows.push(Descriptor { flowspec, filters }),
        }
        let is_known = !matches!(style, Style::Other(_));
        if needs_flowspec && is_known && flows.iter().any(|flow| flow.flowspec.is_none()) {
            return Err(DecodeError::Malformed("FLOWSPEC is missing"));
        }
        Ok(flows)
    }
}

/// Sets an object that a message may have once.
fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), DecodeError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DecodeError::Malformed("an object is there twice")),
    }
}
