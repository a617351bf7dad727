//! What a Linux desktop says about its keychain (freedesktop.org Secret Service 0.2), asked over D-Bus directly: whether
//! a value is there and open, without the question for a password that the store's own calls bring up.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use keyring_core::CredentialStore;
use zbus::{
    MatchRule, Message,
    blocking::{Connection, MessageIterator, Proxy, connection, fdo::DBusProxy},
    message::Type,
    zvariant::{ObjectPath, OwnedObjectPath, Value},
};

use super::{Alive, Known, Poke};
use crate::secrets::{KeychainFault, fault::short};

const BUS_NAME: &str = "org.freedesktop.secrets";
const SERVICE_PATH: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
const COLLECTION: &str = "org.freedesktop.Secret.Collection";
const PROMPT: &str = "org.freedesktop.Secret.Prompt";
/// One question to the keychain's program, which also may have to be started for it.
const CALL_WITHIN: Duration = Duration::from_secs(4);

/// The path that stands for "none".
const NO_PATH: &str = "/";

/// A connection to the session bus, made when it is needed.
#[derive(Default)]
pub(in crate::secrets) struct Desk {
    connection: Option<Connection>,
}

enum DefaultCollection {
    Missing,
    Locked(OwnedObjectPath),
    Open,
}

impl Desk {
    pub(super) fn may_read(&mut self, service: &str, account: &str) -> Result<Known, KeychainFault> {
        self.ask(|bus| match search(bus, service, account)? {
            Found::Open => Ok(Ok(Known::Open)),
            Found::Locked => Ok(Err(KeychainFault::Locked)),
            // Some keychains tell nothing at all of what they hold while they are locked.
            Found::Nothing => Ok(match default_collection(bus)? {
                DefaultCollection::Locked(_) => Err(KeychainFault::Locked),
                DefaultCollection::Open | DefaultCollection::Missing => Ok(Known::Nothing),
            }),
        })
    }

    /// Whether there is such a value, open or locked; always known here, if at all.
    pub(super) fn holds(&mut self, service: &str, account: &str) -> Result<Option<bool>, KeychainFault> {
        self.ask(|bus| match search(bus, service, account)? {
            Found::Open | Found::Locked => Ok(Ok(Some(true))),
            Found::Nothing => Ok(match default_collection(bus)? {
                DefaultCollection::Locked(_) => Err(KeychainFault::Locked),
                DefaultCollection::Open | DefaultCollection::Missing => Ok(Some(false)),
            }),
        })
    }

    pub(super) fn may_write(&mut self, service: &str, account: &str) -> Result<(), KeychainFault> {
        self.ask(|bus| match search(bus, service, account)? {
            Found::Open => Ok(Ok(())),
            Found::Locked => Ok(Err(KeychainFault::Locked)),
            Found::Nothing => Ok(match default_collection(bus)? {
                DefaultCollection::Open => Ok(()),
                // A new one gets its password from the person.
                DefaultCollection::Locked(_) | DefaultCollection::Missing => Err(KeychainFault::Locked),
            }),
        })
    }

    pub(super) fn check(&mut self) -> Result<(), KeychainFault> {
        self.ask(|bus| {
            Ok(match default_collection(bus)? {
                DefaultCollection::Locked(_) => Err(KeychainFault::Locked),
                DefaultCollection::Open | DefaultCollection::Missing => Ok(()),
            })
        })
    }

    fn ask<T>(
        &mut self,
        question: impl FnOnce(&Connection) -> zbus::Result<Result<T, KeychainFault>>,
    ) -> Result<T, KeychainFault> {
        let bus = match &self.connection {
            Some(bus) if !bus.is_closed() => bus,
            _ => self.connection.insert(connect().map_err(|error| fault_of(&error))?),
        };
        match question(bus) {
            Ok(answer) => answer,
            Err(error) => {
                self.connection = None;
                Err(fault_of(&error))
            }
        }
    }
}

pub(super) fn open_store() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

enum Found {
    Open,
    Locked,
    Nothing,
}

fn search(bus: &Connection, service: &str, account: &str) -> zbus::Result<Found> {
    let attributes = HashMap::from([("service", service), ("username", account)]);
    let (open, locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) =
        proxy(bus, SERVICE_PATH, SERVICE)?.call("SearchItems", &(attributes,))?;
    Ok(match (open.is_empty(), locked.is_empty()) {
        (_, false) => Found::Locked,
        (false, true) => Found::Open,
        (true, true) => Found::Nothing,
    })
}

fn default_collection(bus: &Connection) -> zbus::Result<DefaultCollection> {
    let path: OwnedObjectPath = proxy(bus, SERVICE_PATH, SERVICE)?.call("ReadAlias", &("default",))?;
    if path.as_str() == NO_PATH {
        return Ok(DefaultCollection::Missing);
    }
    let locked: bool = proxy(bus, path.as_str(), COLLECTION)?.get_property("Locked")?;
    Ok(match locked {
        true => DefaultCollection::Locked(path),
        false => DefaultCollection::Open,
    })
}

fn proxy<'p>(bus: &Connection, path: &'p str, interface: &'static str) -> zbus::Result<Proxy<'p>> {
    zbus::blocking::proxy::Builder::new(bus)
        .destination(BUS_NAME)?
        .path(path)?
        .interface(interface)?
        .cache_properties(zbus::proxy::CacheProperties::No)
        .build()
}

fn connect() -> zbus::Result<Connection> {
    connection::Builder::session()?.method_timeout(CALL_WITHIN).build()
}

fn fault_of(error: &zbus::Error) -> KeychainFault {
    match error {
        zbus::Error::MethodError(name, words, _) => fault_of_name(name.as_str(), words.as_deref()),
        zbus::Error::FDO(error) => fault_of_name(zbus::DBusError::name(&**error).as_str(), None),
        zbus::Error::InputOutput(error) if error.kind() == io::ErrorKind::TimedOut => KeychainFault::Slow,
        zbus::Error::Address(_)
        | zbus::Error::InputOutput(_)
        | zbus::Error::Handshake(_)
        | zbus::Error::Connection(..)
        | zbus::Error::InterfaceNotFound => KeychainFault::Absent,
        other => KeychainFault::Refused(short(&other.to_string())),
    }
}

fn fault_of_name(name: &str, words: Option<&str>) -> KeychainFault {
    match name.strip_prefix("org.freedesktop.DBus.Error.").unwrap_or(name) {
        "ServiceUnknown" | "NameHasNoOwner" | "UnknownObject" | "Disconnected" | "NoServer" => KeychainFault::Absent,
        spawn if spawn.starts_with("Spawn.") => KeychainFault::Absent,
        "NoReply" | "Timeout" | "TimedOut" => KeychainFault::Slow,
        "org.freedesktop.Secret.Error.IsLocked" => KeychainFault::Locked,
        other => KeychainFault::Refused(short(words.unwrap_or(other))),
    }
}

/// Listens for the keychain's coming, going, locking and unlocking; a thread of its own from the first use on, and again
/// where the bus went away.
#[derive(Clone)]
pub(in crate::secrets) struct Watching {
    runs: Arc<AtomicBool>,
    poke: Poke,
}

impl Watching {
    pub(in crate::secrets) fn new(poke: Poke) -> Self {
        Self {
            runs: Arc::default(),
            poke,
        }
    }

    pub(super) fn ensure(&self) {
        if self.runs.swap(true, Ordering::AcqRel) {
            return;
        }
        let (runs, poke) = (self.runs.clone(), self.poke.clone());
        let watching = move || {
            if let Err(error) = watch(&poke) {
                tracing::debug!(error = %short(&error.to_string()), "the session bus is not watched");
            }
            runs.store(false, Ordering::Release);
        };
        let started = std::thread::Builder::new()
            .name("keychain-watch".to_owned())
            .spawn(watching);
        if started.is_err() {
            self.runs.store(false, Ordering::Release);
        }
    }
}

fn watch(poke: &Poke) -> zbus::Result<()> {
    let bus = connect()?;
    let messages = MessageIterator::from(&bus);
    let dbus = DBusProxy::new(&bus)?;
    let rule = || MatchRule::builder().msg_type(Type::Signal);
    dbus.add_match_rule(rule().sender(BUS_NAME)?.build())?;
    dbus.add_match_rule(owner_rule()?)?;
    // What changed before the rules held.
    if poke() == Alive::No {
        return Ok(());
    }
    for message in messages {
        let message = message?;
        let header = message.header();
        let ours = header.member().is_some_and(|member| member == "NameAcquired");
        if header.message_type() == Type::Signal && !ours && poke() == Alive::No {
            break;
        }
    }
    Ok(())
}

fn owner_rule() -> zbus::Result<MatchRule<'static>> {
    Ok(MatchRule::builder()
        .msg_type(Type::Signal)
        .sender("org.freedesktop.DBus")?
        .member("NameOwnerChanged")?
        .arg(0, BUS_NAME)?
        .build())
}

/// Has the keychain ask the person for its password and waits until that is answered, dismissed, or nobody is left who
/// asks. Without a question on the screen it waits for nothing.
///
/// # Errors
/// [`KeychainFault`]
pub(in crate::secrets) fn ask_person() -> Result<(), KeychainFault> {
    let asked = || {
        let bus = connect()?;
        let dbus = DBusProxy::new(&bus)?;
        let completed = MatchRule::builder()
            .msg_type(Type::Signal)
            .interface(PROMPT)?
            .member("Completed")?
            .build();
        // Before the question: its answer may be quick.
        let messages = MessageIterator::from(&bus);
        dbus.add_match_rule(completed)?;
        dbus.add_match_rule(owner_rule()?)?;
        let Some(prompt) = prompt(&bus)? else { return Ok(()) };
        proxy(&bus, prompt.as_str(), PROMPT)?.call::<_, _, ()>("Prompt", &("",))?;
        for message in messages {
            if ends(&message?, &prompt) {
                break;
            }
        }
        Ok(())
    };
    asked().map_err(|error: zbus::Error| fault_of(&error))
}

/// The question that unlocks the default collection, or makes one.
fn prompt(bus: &Connection) -> zbus::Result<Option<OwnedObjectPath>> {
    let service = proxy(bus, SERVICE_PATH, SERVICE)?;
    let prompt: OwnedObjectPath = match default_collection(bus)? {
        DefaultCollection::Open => return Ok(None),
        DefaultCollection::Locked(path) => {
            let (_unlocked, prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) =
                service.call("Unlock", &(vec![ObjectPath::from(path)],))?;
            prompt
        }
        DefaultCollection::Missing => {
            let label = HashMap::from([("org.freedesktop.Secret.Collection.Label", Value::from("Login"))]);
            let (_made, prompt): (OwnedObjectPath, OwnedObjectPath) =
                service.call("CreateCollection", &(label, "default"))?;
            prompt
        }
    };
    Ok((prompt.as_str() != NO_PATH).then_some(prompt))
}

/// Whether the question is answered, or its keychain gone.
fn ends(message: &Message, prompt: &OwnedObjectPath) -> bool {
    let header = message.header();
    let member = header.member().map(|member| member.as_str());
    match member {
        Some("Completed") => header.path().is_some_and(|path| path.as_str() == prompt.as_str()),
        Some("NameOwnerChanged") => true,
        Some(_) | None => false,
    }
}
