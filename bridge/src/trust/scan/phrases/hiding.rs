//! Keeping something from the person.

use super::super::{
    finding::FindingKind::{OutOfSight, Secrecy},
    rules::{
        Reach::{Definitions, Everywhere},
        Rule,
    },
};

pub(super) const RULES: &[Rule] = &[
    // It stays between us.
    Rule {
        kind: Secrecy,
        reach: Everywhere,
        hinges: &[
            "do not",
            "don't",
            "don’t",
            "dont",
            "never",
            "must not",
            "mustn",
            "should not",
            "shouldn",
            "without",
            "no need to",
        ],
        pattern: r"\b(?:do not|don.?t|never|must not|mustn.?t|should not|shouldn.?t|without|no need to)\b (?:\w+ ){0,2}?(?:tell|mention|inform|reveal|disclos|notif|alert|report|show|display|say|explain|expos|warn|let|bother|acknowledg|describ|admit|discuss)\w*\b.{0,50}?\b(?:users?|human|person|customer|owner|operator|anyone|anybody|them)\b",
    },
    Rule {
        kind: Secrecy,
        reach: Everywhere,
        hinges: &[
            "mention",
            "reveal",
            "disclose",
            "acknowledge",
            "talk about",
            "discuss",
            "refer to",
            "admit",
            "confess",
        ],
        pattern: r"\b(?:do not|don.?t|never|must not|mustn.?t|avoid) (?:ever )?(?:mention|reveal|disclose|acknowledge|talk about|discuss|refer to|admit|confess)(?:ing)?\b.{0,20}?\b(?:this|these|that you|the (?:instruction|step|action|note|file|content|existence|fact|change|transfer|call|request|reason|source|extra|added))",
    },
    Rule {
        kind: Secrecy,
        reach: Everywhere,
        hinges: &[
            "know", "notice", "informed", "aware", "notified", "find out", "told", "alerted", "realize", "realise",
            "suspect", "ever see",
        ],
        pattern: r"\b(?:user|human|person|owner|operator|customer|they)s? (?:must|should|may|need|can|will|shall|do|does|is|are)(?: ?n.?t| not| never)\b(?: \w+){0,2}? (?:know|notice|aware|find out|informed|notified|told|alerted|reali[sz]e|suspect|ever see)|\b(?:so that|make sure|ensure)\b.{0,20}\b(?:user|human|person|owner|operator|nobody|no one)\b.{0,20}\b(?:never|not|n.t|doesn.?t|unaware)\b.{0,20}(?:know|notice|aware|find out|suspect|see)",
    },
    Rule {
        kind: Secrecy,
        reach: Everywhere,
        hinges: &[
            "secretly",
            "covertly",
            "stealth",
            "surreptitious",
            "silently",
            "quietly",
            "discreetly",
            "invisibly",
            "unnoticed",
            "behind the scenes",
        ],
        pattern: r"\b(?:secretly|covertly|stealthily|surreptitiously)\b|\b(?:silently|quietly|discreetly|invisibly|behind the scenes)\b.{0,25}?\b(?:send|forward|copy|upload|read|include|collect|record|transmit|pass|append|bcc|add|post|execut|call|exfiltrat|attach|share|invoke)|\b(?:send|forward|upload|read|include|collect|transmit|append|execut|call|do) (?:it|this|them|that|so)? ?(?:silently|quietly|discreetly|invisibly|unnoticed)\b",
    },
    Rule {
        kind: Secrecy,
        reach: Everywhere,
        hinges: &["hide", "conceal", "withhold", "keep"],
        pattern: r"\b(?:hide|conceal|withhold|keep)\b.{0,40}?\b(?:from (?:the |your )?(?:user|human|person|owner|operator|customer)s?\b|secret from|hidden from|between us|strictly secret|a secret\b|confidential and do)",
    },
    Rule {
        kind: Secrecy,
        reach: Everywhere,
        hinges: &[
            "nutzer",
            "anwender",
            "utilisateur",
            "usuario",
            "utente",
            "gebruiker",
            "пользовател",
            "uzytkownik",
        ],
        pattern: r"\b(?:sag|erzahl|erwahn|verrat|informier|zeig|teil|mitteil)\w*\b.{0,30}\b(?:be)?(?:nutzer|anwender)\w*.{0,25}\bnicht|\b(?:nicht|nichts|ohne)\b.{0,20}(?:be)?(?:nutzer|anwender)\w*.{0,20}(?:sag|erzahl|erwahn|informier|mitteil|frag)|\b(?:dis|dites|mentionn|inform|revel|parl|montr|signal)\w*\b.{0,10}\b(?:pas|rien|jamais)\b.{0,40}utilisateur|\bsans\b.{0,25}\butilisateur|\b(?:no|nunca)\b (?:le |se lo |lo |la )?(?:digas|diga|menciones|mencione|informes|informe|reveles|revele|muestres|muestre|avises|avise|cuentes)\b.{0,30}usuario|\bsin\b.{0,25}(?:informar|avisar|preguntar|decir)\w*.{0,10}usuario|\b(?:nao|nunca)\b.{0,10}\b(?:diga|mencione|informe|revele|mostre|avise|conte)\b.{0,30}usuario|\bnon\b.{0,10}\b(?:dire|menzion|inform|rivel|mostr)\w*\b.{0,30}utente|\b(?:niet|zonder)\b.{0,20}gebruiker|не (?:говори|сообща|упомина|показыва|рассказыва)\w*.{0,30}пользовател|пользовател\w*.{0,12} не (?:говори|сообща|упомина|показыва|рассказыва)",
    },
    Rule {
        kind: Secrecy,
        reach: Everywhere,
        hinges: &[
            "告诉",
            "告訴",
            "告知",
            "提及",
            "透露",
            "通知",
            "ユーザー",
            "利用者",
            "사용자",
        ],
        pattern: r"(?:不要|别|別|勿|不得|不能).{0,6}(?:告诉|告訴|告知|提及|透露|通知).{0,8}(?:用户|用戶|使用者|任何人)|(?:不要|别|別|勿|不得).{0,3}(?:向|对|對|让|讓).{0,4}(?:用户|用戶|使用者).{0,6}(?:告诉|告訴|告知|提及|透露|通知|知道)|(?:ユーザー|利用者).{0,14}(?:言わない|伝えない|教えない|知らせない|通知しない|話さない|知らせず|秘密)|사용자.{0,12}(?:알리지|말하지|언급하지|비밀)",
    },
    // Where nobody looks.
    Rule {
        kind: OutOfSight,
        reach: Definitions,
        hinges: &[
            "<!--",
            "[//]: #",
            "display:none",
            "display: none",
            "font-size:0",
            "font-size: 0",
            "color:white",
            "color: white",
            "visibility:hidden",
        ],
        pattern: r"<!--.{4}|\[//\]: # ?\(|\b(?:display: ?none|font-size: ?0|color: ?white|visibility: ?hidden)",
    },
];
