//! Exposed names: what callers call a tool, and the way back to its connector (DESIGN §6.2).
//!
//! A name depends on nothing but the connector's id, the tool's own name and who collides with it; never on order.
//! The way back is always this table, never a look into the name.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::ids::{ConnectorId, ExposedName, ToolName};

/// What model providers accept at most, in characters.
pub const MAX_NAME_LENGTH: usize = 64;
/// `_` and eight hexadecimal digits.
const SUFFIX_LENGTH: usize = 9;
/// Longer names than this are not worth a suggestion.
const MAX_SUGGESTED_FOR: usize = 256;

/// One tool and its exposed name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub exposed: ExposedName,
    pub server: ConnectorId,
    pub tool: ToolName,
}

/// A tool that cannot be given a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnamed {
    pub server: ConnectorId,
    pub tool: ToolName,
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
pub fn expose(tools: impl IntoIterator<Item = (ConnectorId, ToolName)>) -> Routes {
    let tools: Vec<(ConnectorId, ToolName)> = tools.into_iter().collect();
    let names = name_all(&tools);
    let mut holders: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, name) in names.iter().enumerate() {
        holders.entry(name).or_default().push(index);
    }

    let mut out = Routes::default();
    for (index, (server, tool)) in tools.iter().enumerate() {
        let others = holders.get(names[index].as_str()).map_or(&[][..], Vec::as_slice);
        if let Some(other) = others.iter().find(|other| **other != index) {
            out.unnamed.push(unnamed(server, tool, &tools[*other]));
            continue;
        }
        let exposed = ExposedName::new(names[index].as_str());
        out.by_exposed.insert(exposed.clone(), out.routes.len());
        out.by_tool.insert((server.clone(), tool.clone()), out.routes.len());
        out.routes.push(Route {
            exposed,
            server: server.clone(),
            tool: tool.clone(),
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

    /// The tool behind an exposed name, or behind the raw `mcp__<id>__<tool>` when exactly one tool spells it.
    pub fn resolve(&self, name: &str) -> Option<&Route> {
        if let Some(index) = self.by_exposed.get(name) {
            return self.routes.get(*index);
        }
        let mut spelled = self.routes.iter().filter(|route| route.is_spelled(name));
        match (spelled.next(), spelled.next()) {
            (Some(only), None) => Some(only),
            (Some(_), Some(_)) | (None, _) => None,
        }
    }

    /// The name callers use for a tool.
    pub fn exposed(&self, server: &ConnectorId, tool: &ToolName) -> Option<&ExposedName> {
        let index = self.by_tool.get(&(server.clone(), tool.clone()))?;
        self.routes.get(*index).map(|route| &route.exposed)
    }
}

impl Route {
    fn is_spelled(&self, name: &str) -> bool {
        name.strip_prefix("mcp__")
            .and_then(|rest| rest.strip_prefix(self.server.as_str()))
            .and_then(|rest| rest.strip_prefix("__"))
            .is_some_and(|tool| tool == self.tool.as_str())
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

fn name_all(tools: &[(ConnectorId, ToolName)]) -> Vec<String> {
    let plain: Vec<String> = tools.iter().map(|(server, tool)| plain(server, tool)).collect();
    let mut sharers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, name) in plain.iter().enumerate() {
        sharers.entry(name).or_default().push(index);
    }
    let mut waiting: Vec<usize> = (0..tools.len())
        .filter(|index| {
            let name = plain[*index].as_str();
            name.len() > MAX_NAME_LENGTH || sharers.get(name).is_some_and(|all| all.len() > 1)
        })
        .collect();
    // A suffixed name may be another tool's plain one, which then takes its suffix too, and so on.
    let mut suffixed: Vec<Option<String>> = vec![None; tools.len()];
    while let Some(index) = waiting.pop() {
        if suffixed[index].is_some() {
            continue;
        }
        let name = with_suffix(&plain[index], &tools[index]);
        waiting.extend(sharers.get(name.as_str()).into_iter().flatten());
        suffixed[index] = Some(name);
    }
    suffixed
        .into_iter()
        .zip(plain)
        .map(|(suffixed, plain)| suffixed.unwrap_or(plain))
        .collect()
}

fn plain(server: &ConnectorId, tool: &ToolName) -> String {
    sanitize(&format!("mcp__{server}__{tool}"))
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

fn with_suffix(plain: &str, (server, tool): &(ConnectorId, ToolName)) -> String {
    let hash = Sha256::new()
        .chain_update(server.as_str())
        .chain_update([0])
        .chain_update(tool.as_str())
        .finalize();
    let kept = plain.len().min(MAX_NAME_LENGTH - SUFFIX_LENGTH);
    let suffix = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    format!("{}_{suffix:08x}", &plain[..kept])
}

fn unnamed(server: &ConnectorId, tool: &ToolName, other: &(ConnectorId, ToolName)) -> Unnamed {
    let shown: String = other.1.as_str().chars().take(80).collect();
    Unnamed {
        server: server.clone(),
        tool: tool.clone(),
        reason: format!(
            "It would get the same name as \"{shown}\" of connector \"{}\". Give one of the connectors another id.",
            other.0
        ),
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn tool(server: &str, tool: &str) -> (ConnectorId, ToolName) {
        (ConnectorId::parse(server).unwrap(), ToolName::new(tool))
    }

    fn exposed(routes: &Routes, server: &str, name: &str) -> String {
        let (server, name) = tool(server, name);
        routes.exposed(&server, &name).unwrap().to_string()
    }

    /// The right-hand sides are what `createMcpToolName` of npm's `@earendil-works/pi-mcp` 1.6.0 returns.
    #[test]
    fn names_without_a_collision_are_those_of_pi_mcp() {
        let long = "y".repeat(200);
        for (server, name, expected) in [
            ("files", "read_file", "mcp__files__read_file"),
            ("my.server", "x", "mcp__my_server__x"),
            ("a-b", "c/d.e", "mcp__a_b__c_d_e"),
            ("a", "_x", "mcp__a___x"),
            ("a", "größe", "mcp__a__gr__e"),
            ("a", "日本", "mcp__a____"),
            ("a", "🦀", "mcp__a____"),
            ("a", "x\u{200f}y", "mcp__a__x_y"),
            ("a", "", "mcp__a__"),
            ("srv", &"x".repeat(54), &format!("mcp__srv__{}", "x".repeat(54))),
            ("srv", &"x".repeat(55), SRV_X55),
            ("srv", &long, SRV_Y200),
            ("srv", &"🦀".repeat(40), SRV_CRAB40),
        ] {
            assert_eq!(
                exposed(&expose([tool(server, name)]), server, name),
                expected,
                "{server} {name}"
            );
        }
    }

    const SRV_X55: &str = "mcp__srv__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_89af8a8d";
    const SRV_Y200: &str = "mcp__srv__yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy_63778a22";
    const SRV_CRAB40: &str = "mcp__srv________________________________________________3037273f";

    #[test]
    fn every_party_of_a_collision_gets_its_suffix_and_keeps_its_way_back() {
        let routes = expose([tool("s", "a-b"), tool("s", "a_b"), tool("s", "other")]);
        let (dash, line) = (exposed(&routes, "s", "a-b"), exposed(&routes, "s", "a_b"));
        assert_eq!(dash, "mcp__s__a_b_ed3867d6");
        assert_eq!(line, "mcp__s__a_b_8d47d403");
        assert_eq!(exposed(&routes, "s", "other"), "mcp__s__other");
        assert_eq!(routes.resolve(&dash).unwrap().tool.as_str(), "a-b");
        assert_eq!(routes.resolve(&line).unwrap().tool.as_str(), "a_b");
        assert!(routes.unnamed().is_empty());
    }

    #[test]
    fn ids_that_differ_only_in_punctuation_collide_too() {
        let routes = expose([tool("a-b", "x"), tool("a.b", "x"), tool("a__b", "c"), tool("a", "b__c")]);
        let names: BTreeSet<_> = routes.iter().map(|route| route.exposed.as_str()).collect();
        assert_eq!(names.len(), 4);
        assert!(
            names.iter().all(|name| name.len() > "mcp__a_b__x".len() + 8),
            "{names:?}"
        );
    }

    #[test]
    fn a_tool_named_like_anothers_suffixed_name_takes_a_suffix_itself() {
        let long = "x".repeat(90);
        let suffixed = exposed(&expose([tool("s", &long)]), "s", &long);
        let twin = suffixed.strip_prefix("mcp__s__").unwrap();
        let routes = expose([tool("s", twin), tool("s", &long)]);
        assert_eq!(exposed(&routes, "s", &long), suffixed);
        assert_ne!(exposed(&routes, "s", twin), suffixed);
        assert_eq!(routes.resolve(&suffixed).unwrap().tool.as_str(), long);
    }

    #[test]
    fn tools_that_collide_even_with_a_suffix_are_rejected_together_with_a_reason() {
        let routes = expose([tool("s", "a"), tool("s", "a"), tool("s", "b")]);
        assert_eq!(routes.iter().count(), 1);
        assert_eq!(routes.unnamed().len(), 2);
        assert!(routes.unnamed()[0].reason.contains("same name"));
        assert!(routes.resolve("mcp__s__a").is_none());
    }

    #[test]
    fn the_raw_name_is_understood_when_exactly_one_tool_spells_it() {
        let routes = expose([tool("my.server", "read file"), tool("a__b", "c"), tool("a", "b__c")]);
        assert_eq!(
            routes.resolve("mcp__my.server__read file").unwrap().tool.as_str(),
            "read file"
        );
        assert!(routes.resolve("mcp__a__b__c").is_none());
        assert!(routes.resolve("mcp__nobody__c").is_none());
        assert!(routes.resolve("").is_none());
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_likely_one() {
        let routes = expose([
            tool("files", "read_file"),
            tool("files", "write_file"),
            tool("m", "add"),
            tool("m", "sub"),
        ]);
        let suggest = |wanted: &str| did_you_mean(wanted, routes.iter().map(|r| &r.exposed)).map(ExposedName::as_str);
        assert_eq!(suggest("mcp__files__raed_file"), Some("mcp__files__read_file"));
        assert_eq!(suggest("mcp__files__read-file"), Some("mcp__files__read_file"));
        assert_eq!(suggest("write_file"), Some("mcp__files__write_file"));
        assert_eq!(suggest("mcp__files__reed_file"), Some("mcp__files__read_file"));
        assert_eq!(suggest("mcp__m__mul"), None);
        assert_eq!(suggest("mcp__other__thing"), None);
        assert_eq!(suggest(""), None);
        assert_eq!(suggest(&"x".repeat(100_000)), None);
    }

    fn any_tool() -> impl Strategy<Value = (ConnectorId, ToolName)> {
        let id = prop_oneof!["[ab][._-]{1,2}[ab]", "[a-z]{1,5}", "[a-z]{60,64}"];
        let name = prop_oneof!["[ab][-_./ ][ab]", "\\PC{0,8}", "[a-z]{40,80}"];
        (id, name).prop_map(|(id, name)| tool(&id, &name))
    }

    proptest! {
        #[test]
        fn names_are_legal_distinct_and_free_of_order(
            tools in proptest::collection::btree_set(any_tool(), 0..25),
            seed in any::<u64>(),
        ) {
            let tools: Vec<_> = tools.into_iter().collect();
            let mut shuffled = tools.clone();
            shuffled.sort_by_key(|(id, name)| {
                Sha256::new().chain_update(seed.to_le_bytes()).chain_update(id.as_str()).chain_update(name.as_str()).finalize()
            });
            let table = |routes: &Routes| -> BTreeMap<_, _> {
                routes.iter().map(|r| ((r.server.clone(), r.tool.clone()), r.exposed.clone())).collect()
            };
            let routes = expose(tools.clone());
            prop_assert_eq!(table(&routes), table(&expose(shuffled)));
            prop_assert_eq!(routes.iter().count() + routes.unnamed().len(), tools.len());
            let mut seen = BTreeSet::new();
            for route in routes.iter() {
                let name = route.exposed.as_str();
                prop_assert!(name.len() <= MAX_NAME_LENGTH);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
                prop_assert!(seen.insert(name.to_owned()));
                prop_assert_eq!(routes.resolve(name), Some(route));
            }
        }
    }
}
