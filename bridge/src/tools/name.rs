//! Exposed names: what callers call a tool, and the way back to its connector (DESIGN §6.2).
//!
//! A name depends on nothing but the connector's id, the tool's own name and who collides with it; never on order. What
//! was not approved takes no name from what was. The way back is always this table, never a look into the name.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::ids::{ConnectorId, ExposedName, ToolName};

/// What model providers accept at most, in characters.
pub const MAX_NAME_LENGTH: usize = 64;
/// `_` and eight hexadecimal digits.
const SUFFIX_LENGTH: usize = 9;
/// Longer names than this are not worth a suggestion.
const MAX_SUGGESTED_FOR: usize = 256;

/// What a tool may ask of the names of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// It was approved once, whatever it is now: others that collide with it make way as it does.
    Approved,
    /// It never was: it makes way, and nobody makes way for it.
    Waiting,
}

/// One tool that wants a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claimant {
    pub server: ConnectorId,
    pub tool: ToolName,
    pub claim: Claim,
}

/// One tool and its exposed name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub exposed: ExposedName,
    claimant: Claimant,
}

/// What a name that somebody gave stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved<'a> {
    One(&'a Route),
    /// Each of them could be meant, so that none is.
    Several(Vec<&'a Route>),
    Nothing,
}

/// A tool that cannot be given a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnamed {
    claimant: Claimant,
    /// One sentence for a person.
    pub reason: String,
}

/// Every tool's exposed name, and the way back.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    routes: Vec<Route>,
    by_exposed: HashMap<ExposedName, usize>,
    by_tool: HashMap<(ConnectorId, ToolName), usize>,
    unnamed: Vec<Unnamed>,
}

/// Names all tools of all connectors together, in the order given.
///
/// Give it hidden tools too: a name must not change because another tool is hidden or shown.
pub fn expose(tools: impl IntoIterator<Item = Claimant>) -> Routes {
    let tools: Vec<Claimant> = tools.into_iter().collect();
    let names = name_all(&tools);
    let holders = places(&names);

    let mut out = Routes::default();
    for (index, tool) in tools.iter().enumerate() {
        let others = holders.get(names[index].as_str()).map_or(&[][..], Vec::as_slice);
        let mut others = others.iter().map(|other| &tools[*other]);
        if let Some(other) = others.find(|other| !std::ptr::eq(*other, tool) && tool.makes_way_for(other)) {
            out.unnamed.push(unnamed(tool, other));
            continue;
        }
        let exposed = ExposedName::new(names[index].as_str());
        out.by_exposed.insert(exposed.clone(), out.routes.len());
        let key = (tool.server.clone(), tool.tool.clone());
        out.by_tool.insert(key, out.routes.len());
        out.routes.push(Route {
            exposed,
            claimant: tool.clone(),
        });
    }
    out
}

impl Routes {
    /// All named tools, in the order given to [`expose`].
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.routes.iter()
    }

    /// Tools that collide even with their suffix: none of them can be called.
    pub fn unnamed(&self) -> &[Unnamed] {
        &self.unnamed
    }

    /// The tool behind an exposed name; else behind the raw `mcp__<id>__<tool>`, where no other tool is spelled so or
    /// would be exposed as that without its suffix.
    pub fn resolve(&self, name: &str) -> Resolved<'_> {
        if let Some(route) = self.by_exposed.get(name).and_then(|index| self.routes.get(*index)) {
            return Resolved::One(route);
        }
        let mut meant: Vec<&Route> = self
            .routes
            .iter()
            .filter(|route| route.claimant.could_be(name))
            .collect();
        let nameless = |claim| {
            let mut nameless = self.unnamed.iter().map(|unnamed| &unnamed.claimant);
            nameless.any(|tool| tool.claim == claim && tool.could_be(name))
        };
        let mut contested = nameless(Claim::Approved);
        if contested || meant.iter().any(|route| route.claimant.claim == Claim::Approved) {
            meant.retain(|route| route.claimant.claim == Claim::Approved);
        } else {
            contested = nameless(Claim::Waiting);
        }
        match meant.as_slice() {
            [only] if !contested && only.claimant.is_spelled(name) => Resolved::One(only),
            [] | [_] => Resolved::Nothing,
            [_, _, ..] => Resolved::Several(meant),
        }
    }

    /// The name callers use for a tool.
    pub fn exposed(&self, server: &ConnectorId, tool: &ToolName) -> Option<&ExposedName> {
        let index = self.by_tool.get(&(server.clone(), tool.clone()))?;
        self.routes.get(*index).map(|route| &route.exposed)
    }
}

impl Route {
    pub fn server(&self) -> &ConnectorId {
        &self.claimant.server
    }

    pub fn tool(&self) -> &ToolName {
        &self.claimant.tool
    }
}

impl Unnamed {
    pub fn is(&self, server: &ConnectorId, tool: &ToolName) -> bool {
        self.claimant.server == *server && self.claimant.tool == *tool
    }
}

impl Claimant {
    /// Whether it goes without a name, or with a longer one, where this one would have the same.
    fn makes_way_for(&self, other: &Self) -> bool {
        self.claim == Claim::Waiting || other.claim == Claim::Approved
    }

    fn could_be(&self, name: &str) -> bool {
        self.is_spelled(name) || self.plain() == name
    }

    fn is_spelled(&self, name: &str) -> bool {
        name.strip_prefix("mcp__")
            .and_then(|rest| rest.strip_prefix(self.server.as_str()))
            .and_then(|rest| rest.strip_prefix("__"))
            .is_some_and(|tool| tool == self.tool.as_str())
    }

    fn plain(&self) -> String {
        sanitize(&format!("mcp__{}__{}", self.server, self.tool))
    }

    fn with_suffix(&self, plain: &str) -> String {
        let hash = Sha256::new()
            .chain_update(self.server.as_str())
            .chain_update([0])
            .chain_update(self.tool.as_str())
            .finalize();
        let kept = plain.len().min(MAX_NAME_LENGTH - SUFFIX_LENGTH);
        let suffix = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
        format!("{}_{suffix:08x}", &plain[..kept])
    }
}

/// The name that somebody who wrote `wanted` most likely meant: the same after replacing illegal characters, the only
/// one whose tool is called that, or the nearest by a few keystrokes.
pub fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a ExposedName>) -> Option<&'a ExposedName> {
    if wanted.is_empty() || wanted.len() > MAX_SUGGESTED_FOR {
        return None;
    }
    let wanted = sanitize(wanted);
    let tail = format!("__{wanted}");
    // The shorter the name, the fewer keystrokes make it another word.
    let mut within = (wanted.len().saturating_sub("mcp__".len()) / 4).min(3);
    let mut nearest = None;
    let mut with_tail = Vec::new();
    for name in names {
        if name.as_str() == wanted {
            return Some(name);
        }
        if name.as_str().ends_with(&tail) {
            with_tail.push(name);
        }
        match keystrokes(&wanted, name.as_str(), within) {
            Some(distance) if distance < within || nearest.is_none() => {
                within = distance;
                nearest = Some(name);
            }
            Some(_) | None => {}
        }
    }
    match with_tail.as_slice() {
        [only] => Some(only),
        [] | [_, ..] => nearest,
    }
}

fn name_all(tools: &[Claimant]) -> Vec<String> {
    let plain: Vec<String> = tools.iter().map(Claimant::plain).collect();
    let suffixed: Vec<String> = tools
        .iter()
        .zip(&plain)
        .map(|(tool, plain)| tool.with_suffix(plain))
        .collect();
    let (sharers, twins) = (places(&plain), places(&suffixed));
    let needs_suffix = |index: usize| {
        let name = plain[index].as_str();
        // What another one is called, or would be if it collided too, is its alone.
        let alike = [&sharers, &twins]
            .into_iter()
            .filter_map(|same| same.get(name))
            .flatten();
        let mut others = alike.filter(|other| **other != index).map(|other| &tools[*other]);
        name.len() > MAX_NAME_LENGTH || others.any(|other| tools[index].makes_way_for(other))
    };
    let needs: Vec<bool> = (0..tools.len()).map(needs_suffix).collect();
    let names = needs.into_iter().zip(plain.iter().zip(&suffixed));
    names
        .map(|(needs, (plain, suffixed))| if needs { suffixed } else { plain }.clone())
        .collect()
}

/// Where each name stands.
fn places(names: &[String]) -> HashMap<&str, Vec<usize>> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        places.entry(name).or_default().push(index);
    }
    places
}

/// One `_` for every UTF-16 code unit that is not allowed, as JavaScript clients count them.
fn sanitize(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            out.push(c);
        } else {
            out.extend(std::iter::repeat_n('_', c.len_utf16()));
        }
    }
    out
}

fn unnamed(tool: &Claimant, other: &Claimant) -> Unnamed {
    let shown: String = other.tool.as_str().chars().take(80).collect();
    Unnamed {
        reason: format!(
            "It would get the same name as \"{shown}\" of connector \"{}\". Give one of the connectors another id.",
            other.server
        ),
        claimant: tool.clone(),
    }
}

/// Insertions, deletions and replacements from `a` to `b`, if at most `limit`.
fn keystrokes(a: &str, b: &str, limit: usize) -> Option<usize> {
    // What both begin with costs no keystroke, and most names of one connector begin alike.
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a.as_bytes()[same..], &b.as_bytes()[same..]);
    if limit == 0 || a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, from) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, to) in b.iter().enumerate() {
            let replaced = above[column] + usize::from(from != to);
            current.push(replaced.min(above[column + 1] + 1).min(current[column] + 1));
        }
        if current.iter().all(|distance| *distance > limit) {
            return None;
        }
        above = current;
    }
    above.last().copied().filter(|distance| *distance <= limit)
}
