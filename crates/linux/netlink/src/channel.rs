//! One socket for requests to the kernel (netlink(7), rtnetlink(7)).
//!
//! A request is a message with a sequence number. The kernel answers with the messages that were requested, which have the same
//! number, and then with an acknowledgement, an error, or the end of a list. All of it is there before the call that sends the
//! request returns, so a blocking socket does not wait. The limit on the time of a receive is for answers that were lost.

use crate::Error;
use cutline_sys::SysError;
use cutline_sys::sockopt::{NETLINK_CAP_ACK, NETLINK_EXT_ACK};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NlasIterator,
};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, getsockname, recvfrom, send,
    socket_with,
};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most requests at once: the errors of all of them fit into the socket's buffer.
const MOST_AT_ONCE: usize = 64;
/// Number of requests for a list that changes while it is read.
const ATTEMPTS: usize = 8;
/// The bytes of a message's header (`struct nlmsghdr`).
const HEADER: usize = 16;
/// The attribute of an error that explains it (`NLMSGERR_ATTR_MSG`).
const EXPLANATION: u16 = 1;
/// Messages and attributes begin at multiples of this (`NLMSG_ALIGNTO`).
const ALIGNMENT: usize = 4;

/// A socket for requests, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: OwnedFd,
    sequence: u32,
}

impl Channel {
    pub(crate) fn open() -> Result<Self, Error> {
        let socket = socket(SocketFlags::empty(), 0)?;
        let failed = |error: io::Error| SysError::new("a netlink socket cannot be set up", error);
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE)).map_err(|errno| failed(errno.into()))?;
        NETLINK_EXT_ACK.set(&socket, 1).map_err(failed)?;
        NETLINK_CAP_ACK.set(&socket, 1).map_err(failed)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Returns the number of the socket, which is in the kernel's reports of changes made over it (`nlmsg_pid`).
    pub(crate) fn port(&self) -> Result<u32, Error> {
        let failed = |errno: Errno| SysError::new("the address of a netlink socket cannot be read", errno);
        let address = getsockname(&self.socket).map_err(failed)?;
        Ok(SocketAddrNetlink::try_from(address).map_err(failed)?.pid())
    }

    /// Sends a request that the kernel carries out. Returns its answers, those before the acknowledgement. `failure` describes an
    /// error, a sentence such as "the class cannot be added".
    pub(crate) fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        failure: impl FnOnce() -> String,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        self.send(message, flags | NLM_F_REQUEST | NLM_F_ACK)?;
        self.answers().map(|(answers, _)| answers).map_err(|problem| problem.in_context(failure))
    }

    /// Sends requests that the kernel carries out in their order, also those after one that it refuses. Returns the error of each that was
    /// refused, in the words of `failure`.
    ///
    /// # Errors
    /// When they cannot be sent, or the answers are lost; then some of them may have been carried out.
    pub(crate) fn batch(
        &mut self,
        messages: &[(RouteNetlinkMessage, u16)],
        failure: impl Fn(usize) -> String,
    ) -> Result<BTreeMap<usize, Error>, Error> {
        let mut failed = BTreeMap::new();
        for (part, messages) in messages.chunks(MOST_AT_ONCE).enumerate() {
            let first = self.sequence.wrapping_add(1);
            let mut bytes = Vec::new();
            for (at, (message, flags)) in messages.iter().enumerate() {
                // An error is always answered; that all are carried out is answered once.
                let ack = if at + 1 == messages.len() { NLM_F_ACK } else { 0 };
                self.write(message.clone(), flags | NLM_F_REQUEST | ack, &mut bytes);
            }
            self.send_bytes(&bytes)?;
            let number = |at: usize| part * MOST_AT_ONCE + at;
            let refused =
                self.refusals(first).map_err(|problem| problem.in_context(|| failure(number(0))))?;
            let in_words =
                |(at, problem): (usize, Problem)| (number(at), problem.in_context(|| failure(number(at))));
            failed.extend(refused.into_iter().map(in_words));
        }
        Ok(failed)
    }

    /// Receives the errors of the requests from `first` on, until the last one is answered.
    fn refusals(&self, first: u32) -> Result<Vec<(usize, Problem)>, Problem> {
        let mut refused = Vec::new();
        loop {
            let datagram = receive(&self.socket).map_err(Problem::Io)?;
            for message in messages(&datagram) {
                let (header, payload) = message?.into_parts();
                let at = header.sequence_number.wrapping_sub(first);
                let last = self.sequence.wrapping_sub(first);
                let NetlinkPayload::Error(error) = payload else { continue };
                if at > last {
                    continue;
                }
                if error.code.is_some() {
                    let explanation = explanation(header.flags, &error.header);
                    refused.push((at as usize, Problem::Refused(error.to_io(), explanation)));
                }
                if at == last {
                    return Ok(refused);
                }
            }
        }
    }

    /// Requests a list.
    pub(crate) fn list(
        &mut self,
        message: &RouteNetlinkMessage,
        failure: impl Fn() -> String,
    ) -> Result<Vec<RouteNetlinkMessage>, Error> {
        for _ in 0..ATTEMPTS {
            self.send(message.clone(), NLM_F_REQUEST | NLM_F_DUMP)?;
            let (answers, is_whole) = self.answers().map_err(|problem| problem.in_context(&failure))?;
            if is_whole {
                return Ok(answers);
            }
        }
        Err(Error::Answer(format!("{}: the list changes faster than it can be read", failure())))
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> Result<(), Error> {
        let mut bytes = Vec::new();
        self.write(message, flags, &mut bytes);
        self.send_bytes(&bytes)
    }

    /// Writes a request with the next sequence number behind others.
    fn write(&mut self, message: RouteNetlinkMessage, flags: u16, bytes: &mut Vec<u8>) {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let start = bytes.len().next_multiple_of(ALIGNMENT);
        bytes.resize(start + message.buffer_len(), 0);
        message.serialize(&mut bytes[start..]);
    }

    fn send_bytes(&self, bytes: &[u8]) -> Result<(), Error> {
        send(&self.socket, bytes, SendFlags::empty())
            .map(drop)
            .map_err(|errno| SysError::new("a netlink request cannot be sent", errno).into())
    }

    /// Receives the answers to the last request, and whether they are a consistent list.
    fn answers(&self) -> Result<(Vec<RouteNetlinkMessage>, bool), Problem> {
        let (mut answers, mut is_whole) = (Vec::new(), true);
        loop {
            let datagram = receive(&self.socket).map_err(Problem::Io)?;
            for message in messages(&datagram) {
                let (header, payload) = message?.into_parts();
                // The rest of an earlier request whose answer came too late.
                if header.sequence_number != self.sequence {
                    continue;
                }
                is_whole &= header.flags & NLM_F_DUMP_INTR == 0;
                match payload {
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    NetlinkPayload::Done(done) if done.code == 0 => return Ok((answers, is_whole)),
                    NetlinkPayload::Done(done) => {
                        return Err(Problem::Io(io::Error::from_raw_os_error(done.code.abs())));
                    }
                    NetlinkPayload::Error(error) if error.code.is_none() => return Ok((answers, is_whole)),
                    NetlinkPayload::Error(error) => {
                        let explanation = explanation(header.flags, &error.header);
                        return Err(Problem::Refused(error.to_io(), explanation));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Reason for the lack of an answer.
enum Problem {
    Io(io::Error),
    Refused(io::Error, Option<String>),
    Form(String),
}

impl Problem {
    fn in_context(self, failure: impl FnOnce() -> String) -> Error {
        match self {
            Self::Io(error) => Error::refused(failure(), error, None),
            Self::Refused(error, explanation) => Error::refused(failure(), error, explanation),
            Self::Form(form) => Error::Answer(form),
        }
    }
}

/// Opens a netlink socket of routes, links and traffic control, which listens to groups of messages (`RTMGRP_*`).
pub(crate) fn socket(flags: SocketFlags, groups: u32) -> Result<OwnedFd, SysError> {
    let failed = |errno: Errno| SysError::new("a netlink socket cannot be opened", errno);
    let flags = flags | SocketFlags::CLOEXEC;
    // No protocol is protocol 0, `NETLINK_ROUTE`.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None).map_err(failed)?;
    bind(&socket, &SocketAddrNetlink::new(0, groups)).map_err(failed)?;
    Ok(socket)
}

/// Receives one whole datagram of the kernel. Other processes may send to a netlink socket, too; their datagrams are skipped.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Vec<u8>> {
    loop {
        let peek = RecvFlags::PEEK | RecvFlags::TRUNC;
        let length = match recvfrom(&socket, &mut [0][..], peek) {
            Ok((_, length, _)) => length,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let mut datagram = Vec::with_capacity(length.max(1));
        let (_, _, sender) = recvfrom(&socket, spare_capacity(&mut datagram), RecvFlags::empty())?;
        let sender = sender.and_then(|address| SocketAddrNetlink::try_from(address).ok());
        if sender.is_some_and(|address| address.pid() == 0) {
            return Ok(datagram);
        }
    }
}

/// Splits a datagram into its messages' bytes.
pub(crate) fn split(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        if length < HEADER || length > rest.len() {
            return None;
        }
        let message = &rest[..length];
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some(message)
    })
}

fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<NetlinkMessage<RouteNetlinkMessage>, Problem>> {
    split(datagram)
        .map(|bytes| NetlinkMessage::deserialize(bytes).map_err(|error| Problem::Form(error.to_string())))
}

/// Returns the kernel's words for an error: an attribute behind the header of the request.
fn explanation(flags: u16, behind_code: &[u8]) -> Option<String> {
    if flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let request = if flags & NLM_F_CAPPED != 0 {
        HEADER
    } else {
        u32::from_ne_bytes(*behind_code.first_chunk()?) as usize
    };
    let attributes = behind_code.get(request.next_multiple_of(ALIGNMENT)..)?;
    let words = NlasIterator::new(attributes).flatten().find(|attribute| attribute.kind() == EXPLANATION)?;
    let words = String::from_utf8_lossy(words.value()).trim_end_matches('\0').to_owned();
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_split_by_its_lengths() {
        let message = |length: u32, room: usize| {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.resize(room, 7);
            bytes
        };
        let datagram = [message(17, 20), message(16, 16), message(20, 20)].concat();
        let lengths = |datagram: &[u8]| split(datagram).map(<[u8]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&datagram), [17, 16, 20]);
        // Cut off, too short to be a message, and longer than the datagram.
        assert_eq!(lengths(&datagram[..53]), [17, 16]);
        assert_eq!(lengths(&message(15, 16)), [0; 0]);
        assert_eq!(lengths(&message(u32::MAX, 16)), [0; 0]);
        assert_eq!(lengths(&[1, 2]), [0; 0]);
    }

    #[test]
    fn an_explanation_is_behind_the_request() {
        let words = b"no such thing\0";
        let attribute = |kind: u16| {
            let mut bytes = (4 + words.len() as u16).to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(words);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let capped = [vec![0; HEADER], attribute(2), attribute(EXPLANATION)].concat();
        assert_eq!(explanation(NLM_F_ACK_TLVS | NLM_F_CAPPED, &capped).as_deref(), Some("no such thing"));
        let whole = [18_u32.to_ne_bytes().to_vec(), vec![0; 16], attribute(EXPLANATION)].concat();
        assert_eq!(explanation(NLM_F_ACK_TLVS, &whole).as_deref(), Some("no such thing"));
        assert_eq!(explanation(NLM_F_CAPPED, &capped), None);
        for cut in 0..capped.len() - attribute(EXPLANATION).len() {
            assert_eq!(explanation(NLM_F_ACK_TLVS | NLM_F_CAPPED, &capped[..cut]), None, "{cut}");
        }
    }
}
