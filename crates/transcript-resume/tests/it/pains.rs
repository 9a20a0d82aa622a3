//! Kinds of data loss that users reported, each as a fixture: the path, the messages of the next
//! request, the decisions and the findings under both policies.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use transcript_reader::{Bodies, EntryNo, Index, OtherFiles, Source};
use transcript_resume::request::RequestOptions;
use transcript_resume::{Decision, LeafReason, Policy, Tree};

/// One fixture and what becomes of it.
struct Pain {
    file: &'static str,
    /// Codes and lines: those of the lines, then those of the links under `recover`.
    findings: &'static str,
    vendor: Reported,
    /// Where it differs from `vendor`.
    recover: Option<Reported>,
}

/// The short names of the entries are in their uuids: bytes 2 and 3 are the name.
struct Reported {
    path: &'static str,
    /// One part per message: the first letter of its role, then its blocks. A result is `RES`, or
    /// `ERR` when it failed, with the name of its call.
    messages: &'static str,
    /// Without the leaf, where it is the last tip of the file.
    decisions: &'static str,
}

const fn reported(path: &'static str, messages: &'static str, decisions: &'static str) -> Reported {
    Reported {
        path,
        messages,
        decisions,
    }
}

const PAINS: &[Pain] = &[
    Pain {
        file: "03-dangling-behind-rewind",
        findings: "G-REWIND 2, G-DANGLING 4",
        vendor: reported(
            "u2 a2",
            r#"u: "And in Porto?" | a: "At 15:20.""#,
            "truncated u2",
        ),
        recover: Some(reported(
            "u2 a2",
            r#"u: "And in Porto?" | a: "At 15:20.""#,
            "gap u2 rewind",
        )),
    },
    Pain {
        file: "03-parent-in-another-file/fork",
        findings: "",
        vendor: reported(
            "u1 a1 u2 a2 u4 a4",
            r#"u: "When is low tide" | a: "At 15:12." | u: "And tomorrow?" | a: "At 16:03." | u: "Is that spring t" | a: "No, that is on t""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "03-parent-in-another-file/session",
        findings: "G-REWIND 3",
        vendor: reported(
            "u3 a3",
            r#"u: "And the day afte" | a: "At 16:58.""#,
            "truncated u3",
        ),
        recover: Some(reported(
            "u1 a1 u3 a3",
            r#"u: "When is low tide" | a: "At 15:12." | u: "And the day afte" | a: "At 16:58.""#,
            "bridge u3-a1 other-file",
        )),
    },
    Pain {
        file: "03-dangling",
        findings: "G-DANGLING 3",
        vendor: reported(
            "u2 a2",
            r#"u: "And tomorrow?" | a: "At 16:03.""#,
            "truncated u2",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "When is low tide" | a: "At 15:12." | u: "And tomorrow?" | a: "At 16:03.""#,
            "bridge u2-a1 file-order",
        )),
    },
    Pain {
        file: "04-boundary-alone",
        findings: "",
        vendor: reported(
            "u1 a1",
            r#"u: "List the eclipse" | a: "Four of them.""#,
            "leaf a1",
        ),
        recover: Some(reported(
            "u1 a1",
            r#"u: "List the eclipse" | a: "Four of them.""#,
            "",
        )),
    },
    Pain {
        file: "04-list-lost-segment-whole",
        findings: "C-SEGMENT 5",
        vendor: reported(
            "b1 s1 u3 a3",
            r#"u: "Told so far: the", "Where is the one" | a: "In Spain, Icelan""#,
            "cut b1, splice b1",
        ),
        recover: Some(reported(
            "b1 s1 u2 a2 u3 a3",
            r#"u: "Told so far: the", "Which of them is" | a: "3 March, of the " | u: "Where is the one" | a: "In Spain, Icelan""#,
            "cut b1, splice b1",
        )),
    },
    Pain {
        file: "04-logical-descendant",
        findings: "C-CYCLE 5",
        vendor: reported(
            "b1 s1 u2 a2 u3 a3",
            r#"u: "Told so far: the", "Which of them is" | a: "3 March, of the " | u: "Where is the one" | a: "In Spain, Icelan""#,
            "cut b1, splice b1",
        ),
        recover: None,
    },
    Pain {
        file: "04-logical-lost",
        findings: "C-LOGICAL 5",
        vendor: reported(
            "b1 s1 u2 a2 u3 a3",
            r#"u: "Told so far: the", "Which of them is" | a: "3 March, of the " | u: "Where is the one" | a: "In Spain, Icelan""#,
            "cut b1, splice b1",
        ),
        recover: None,
    },
    Pain {
        file: "04-renamed-by-a-fork",
        findings: "C-STALE 5",
        vendor: reported(
            "b1 s1 u3 a3",
            r#"u: "Told so far: the", "Where is the one" | a: "In Spain, Icelan""#,
            "cut b1, splice-ignored b1",
        ),
        recover: Some(reported(
            "b1 s1 u2 a2 u3 a3",
            r#"u: "Told so far: the", "Which of them is" | a: "3 March, of the " | u: "Where is the one" | a: "In Spain, Icelan""#,
            "cut b1, splice b1",
        )),
    },
    Pain {
        file: "04-stale-segment",
        findings: "C-STALE 5",
        vendor: reported(
            "b1 s1 u3 a3",
            r#"u: "Told so far: the", "Where is the one" | a: "In Spain, Icelan""#,
            "cut b1, splice-ignored b1",
        ),
        recover: None,
    },
    Pain {
        file: "05-call-without-result",
        findings: "P-NORESULT 2",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "How old is the m", "Never mind, tell" | a: "About twenty day""#,
            "",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "How old is the m" | a: USE Age | u: ERR Age "…", "Never mind, tell" | a: "About twenty day""#,
            "",
        )),
    },
    Pain {
        file: "05-late-result",
        findings: "P-ORDER 5",
        vendor: reported(
            "u1 a1 u2 a2 r1 u3 a3",
            r#"u: "How old is the m" | a: USE Age | u: ERR Age "[Tool result mis", "Meanwhile: is it" | a: "It is waning." | u: "And the age?" | a: "About twenty day""#,
            "",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2 r1 u3 a3",
            r#"u: "How old is the m" | a: USE Age | u: RES Age "20.4 days", "Meanwhile: is it" | a: "It is waning." | u: "And the age?" | a: "About twenty day""#,
            "",
        )),
    },
    Pain {
        file: "05-result-without-call",
        findings: "P-NOUSE 3",
        vendor: reported(
            "u1 a1 u2 u3 a2",
            r#"u: "How old is the m" | a: "About twenty day" | u: "Thanks." | a: "You are welcome.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "06-nul-around-and-inside",
        findings: "L-NUL 2, L-NUL 3",
        vendor: reported("a2", r#"a: "24 May.""#, "truncated a2"),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "What is the date" | a: "5 April." | u: "And of Pentecost" | a: "24 May.""#,
            "salvage a1, salvage u2",
        )),
    },
    Pain {
        file: "06-split",
        findings: "L-SPLIT 2",
        vendor: reported(
            "u2 a2",
            r#"u: "And 2028?" | a: "16 April 2028.""#,
            "truncated u2",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "Give me the days" | a: "5 April 2026\n28 " | u: "And 2028?" | a: "16 April 2028.""#,
            "salvage a1",
        )),
    },
    Pain {
        file: "06-torn-glued-nul",
        findings: "L-TORN-MID 2, L-NUL 3, L-TORN-TAIL 5",
        vendor: reported(
            "u2",
            r#"u: "And of Pentecost" | a: "No response requ""#,
            "truncated u2",
        ),
        recover: Some(reported(
            "u1 a1 u2",
            r#"u: "What is the date" | a: "5 April." | u: "And of Pentecost" | a: "No response requ""#,
            "salvage a1",
        )),
    },
    Pain {
        file: "06-two-objects",
        findings: "L-GLUED 2",
        vendor: reported("a2", r#"a: "24 May.""#, "truncated a2"),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "What is the date" | a: "5 April." | u: "And of Pentecost" | a: "24 May.""#,
            "salvage u2",
        )),
    },
    Pain {
        file: "06-written-again",
        findings: "L-TORN-MID 2",
        vendor: reported(
            "u2 a2",
            r#"u: "And of Pentecost" | a: "24 May.""#,
            "truncated u2",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "What is the date" | a: "5 April." | u: "And of Pentecost" | a: "24 May.""#,
            "salvage a1",
        )),
    },
    Pain {
        file: "07-progress-forks",
        findings: "",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Which constellat" | a: "Leo." | u: "And after it?" | a: "Virgo.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "08-parallel-calls",
        findings: "G-SIBLING 2",
        vendor: reported(
            "u1 a1 a2 a3 r1 r2 a4",
            r#"u: "Compare the suns" | a: thinking, USE Lisbon, USE Madrid | u: RES Lisbon "18:38", RES Madrid "19:19" | a: "In Lisbon the su""#,
            "siblings a1",
        ),
        recover: None,
    },
    Pain {
        file: "09-empty-thinking",
        findings: "",
        vendor: reported(
            "u1 a1 a2 u2 u3 a3",
            r#"u: "Is Venus up?" | a: thinking, USE Venus | u: RES Venus "no", "And Mars?" | a: "Mars is.""#,
            "",
        ),
        // Newer models return thinking in this form, and expect it back.
        recover: None,
    },
    Pain {
        file: "10-large-image",
        findings: "",
        vendor: reported(
            "u1 a1 u2 u3 a2",
            r#"u: "What is on the s" | a: USE Chart | u: RES Chart image, "Only the names." | a: "Vega, Altair, De""#,
            "",
        ),
        // The API measures the base64, and takes 5 MiB of it.
        recover: Some(reported(
            "u1 a1 u2 u3 a2",
            r#"u: "What is on the s" | a: USE Chart | u: RES Chart "[media left out:", "Only the names." | a: "Vega, Altair, De""#,
            "",
        )),
    },
    Pain {
        file: "11-bom",
        findings: "T-BOM 1",
        vendor: reported(
            "u1 a1",
            r#"u: "How long is toda" | a: "11 hours 45 minu""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "11-line-separator",
        findings: "",
        vendor: reported(
            "u1 a1",
            r#"u: "Two lines, pleas" | a: "Here\u{2028}they are.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "11-nul-escape",
        findings: "T-NUL 3",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Print the table." | a: USE Table | u: RES Table "sun�moon" | a: "Two rows.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "11-surrogate",
        findings: "T-SURR 3",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Which sign is th" | a: USE Sign | u: RES Sign "Pisces �…" | a: "In Pisces.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "11-utf8-inside",
        findings: "T-UTF8 2",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "How do you write" | a: "月�" | u: "In pinyin, pleas" | a: "Yue.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "11-utf8-torn",
        findings: "L-TORN-MID 3, G-DANGLING 4",
        vendor: reported("a2", r#"a: "Yes, those.""#, "truncated a2"),
        recover: Some(reported(
            "u1 a1 a2",
            r#"u: "How do you write" | a: "Two characters.", "Yes, those.""#,
            "bridge a2-a1 file-order",
        )),
    },
    Pain {
        file: "16-hook-many-times",
        findings: "G-DUP 5, G-DUP 8",
        vendor: reported(
            "u3 a3 h1 u4 a4",
            r#"u: "And when does it" | a: "At 18:38." | u: "<system-reminder", "How long is the " | a: "11 hours and 51 ""#,
            "cycle u3, truncated u3, repeated h1, repeated h1",
        ),
        recover: Some(reported(
            "u1 h1 u2 a2 u3 a3 u4 a4",
            r#"u: "<system-reminder", "When did the sun", "Here, I mean." | a: "At 6:47." | u: "And when does it" | a: "At 18:38." | u: "How long is the " | a: "11 hours and 51 ""#,
            "bridge u4-a3 later-copy, bridge u3-a2 later-copy, repeated h1, repeated h1",
        )),
    },
    Pain {
        file: "16-identical",
        findings: "G-DUP 3",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Which planet is " | a: "Venus." | u: "And next?" | a: "Jupiter.""#,
            "repeated a1",
        ),
        recover: None,
    },
    Pain {
        file: "16-replayed-block",
        findings: "G-DUP 5, G-DUP 6",
        vendor: reported(
            "u2 a2 u3 a3",
            r#"u: "And next?" | a: "Jupiter." | u: "And the faintest" | a: "Neptune.""#,
            "repeated u2, repeated a2",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2 u3 a3",
            r#"u: "Which planet is " | a: "Venus." | u: "And next?" | a: "Jupiter." | u: "And the faintest" | a: "Neptune.""#,
            "repeated u2, repeated a2",
        )),
    },
    Pain {
        file: "16-root-again",
        findings: "G-DUP 5",
        vendor: reported(
            "a1 u2 a2 u1 u3 a3",
            r#"a: "Venus." | u: "And next?" | a: "Jupiter." | u: "Which planet is ", "And the faintest" | a: "Neptune.""#,
            "cycle a1, truncated a1, repeated u1",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2 u3 a3",
            r#"u: "Which planet is " | a: "Venus." | u: "And next?" | a: "Jupiter." | u: "And the faintest" | a: "Neptune.""#,
            "bridge u3-a2 later-copy, repeated u1",
        )),
    },
    Pain {
        file: "17-exchanged-parents",
        findings: "G-CYCLE 3",
        vendor: reported(
            "u1 a1 u3 a3",
            r#"u: "Which sign is th" | a: "In Pisces." | u: "And Mars?" | a: "In Aquarius.""#,
            "",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2 u3 a3",
            r#"u: "Which sign is th" | a: "In Pisces." | u: "And the moon?" | a: "In Scorpio." | u: "And Mars?" | a: "In Aquarius.""#,
            "bridge u3-a2 exchanged, bridge u2-a1 exchanged, cycle u2",
        )),
    },
    Pain {
        file: "17-hook-again",
        findings: "G-DUP 4",
        vendor: reported(
            "h1 u2",
            r#"u: "<system-reminder", "Here, I mean." | a: "No response requ""#,
            "cycle h1, truncated h1, repeated h1",
        ),
        recover: Some(reported(
            "u1 h1 u2",
            r#"u: "<system-reminder", "When did the sun", "Here, I mean." | a: "No response requ""#,
            "repeated h1",
        )),
    },
    Pain {
        file: "17-self-parent",
        findings: "G-CYCLE 1",
        vendor: reported(
            "a1 u1 a2",
            r#"a: "Good morning." | u: "When did the sun" | a: "At 6:47.""#,
            "cycle a1, truncated a1",
        ),
        recover: Some(reported(
            "a1 u1 a2",
            r#"u: "…" | a: "Good morning." | u: "When did the sun" | a: "At 6:47.""#,
            "gap a1 nothing-before, cycle a1",
        )),
    },
    Pain {
        file: "17-two-cycles",
        findings: "G-CYCLE 1, G-CYCLE 3",
        vendor: reported(
            "u2 a2 u3 a3",
            r#"u: "And the moon?" | a: "In Scorpio." | u: "And Mars?" | a: "In Aquarius.""#,
            "cycle u2, truncated u2",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2 u3 a3",
            r#"u: "Which sign is th" | a: "In Pisces." | u: "And the moon?" | a: "In Scorpio." | u: "And Mars?" | a: "In Aquarius.""#,
            "bridge u2-a1 file-order, gap u1 nothing-before, cycle u1, cycle u2",
        )),
    },
    Pain {
        file: "18-empty",
        findings: "",
        vendor: reported("", "refused", ""),
        recover: None,
    },
    Pain {
        file: "18-torn-and-appended",
        findings: "L-TORN-MID 4",
        vendor: reported(
            "u1 a1 u2 a2 u3 a3",
            r#"u: "Write the table " | a: USE Write | u: RES Write "written" | a: "The table of the" | u: "Show me the firs" | a: "1 March, 4:58, 2""#,
            "",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2 u3 a3",
            r#"u: "Write the table " | a: USE Write | u: RES Write "written" | a: "The table of the" | u: "Show me the firs" | a: "1 March, 4:58, 2""#,
            "repeated a2",
        )),
    },
    Pain {
        file: "18-torn-tail",
        findings: "L-TORN-TAIL 4",
        vendor: reported(
            "u1 a1 u2",
            r#"u: "Write the table " | a: USE Write | u: RES Write "written" | a: "No response requ""#,
            "",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "Write the table " | a: USE Write | u: RES Write "written" | a: "The table of the""#,
            "salvage a2",
        )),
    },
    Pain {
        file: "19-rewind-to-the-start",
        findings: "",
        vendor: reported("u2 a2", r#"u: "Plan a walk at d" | a: "On 8 March.""#, ""),
        recover: None,
    },
    Pain {
        file: "19-rewind",
        findings: "G-REWIND 4",
        vendor: reported(
            "u1 a1 a2 u3 a4",
            r#"u: "Plan a walk by m" | a: thinking, "On 3 March the m" | u: "Where to?" | a: "Along the dunes.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "20-agent-of-the-parent/subagents/agent-c58d2a17",
        findings: "",
        vendor: reported("u1 a2", "refused", "truncated u1"),
        recover: Some(reported(
            "u1 a2",
            r#"u: "Find the next br" | a: "C/2025 R3.""#,
            "gap u1 other-file",
        )),
    },
    Pain {
        file: "20-agent-of-the-parent",
        findings: "",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Let an agent fin" | a: USE Agent | u: RES Agent "C/2025 R3.\nagent" | a: "It will be C/202""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "20-in-one-file",
        findings: "S-MIXED 3",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Let an agent fin" | a: USE Task | u: RES Task "C/2025 R3." | a: "It will be C/202""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "20-subagents/subagents/agent-a7c41e90",
        findings: "",
        vendor: reported("u1 a1", "refused", ""),
        recover: Some(reported(
            "u1 a1",
            r#"u: "Find the next br" | a: "C/2025 R3.""#,
            "",
        )),
    },
    Pain {
        file: "20-subagents/subagents/agent-b03d5f62",
        findings: "",
        vendor: reported("u1 a1", "refused", ""),
        recover: Some(reported(
            "u1 a1",
            r#"u: "Find the next me" | a: "The Lyrids.""#,
            "",
        )),
    },
    Pain {
        file: "20-subagents",
        findings: "",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Let an agent fin" | a: USE Agent | u: RES Agent "C/2025 R3.\nagent" | a: "It will be C/202""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "21-shapes",
        findings: "L-NOT-OBJECT 10",
        vendor: reported(
            "u4 a5",
            r#"u: "Read it back." | a: "Height in metres""#,
            "truncated u4",
        ),
        recover: Some(reported(
            "u1 a1 u2 u3 a3 h1 u4 a5",
            r#"u: "Fix the header o" | a: USE Edit | u: RES Edit "done", "Is it fixed?" | a: "It is." | u: "Read it back." | a: "Height in metres""#,
            "bridge u4-h1 unusable, bridge u3-u2 unusable",
        )),
    },
    Pain {
        file: "22-other-session",
        findings: "X-SESSION 5",
        vendor: reported(
            "x1 x2 x3 x4",
            r#"u: "Print the calend" | a: "It starts on a W" | u: "And May?" | a: "On a Friday.""#,
            "",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2",
            r#"u: "When is high tid" | a: "At 9:04." | u: "And in the eveni" | a: "At 21:22.""#,
            "foreign x1",
        )),
    },
    Pain {
        file: "27-snapshot",
        findings: "",
        vendor: reported(
            "u1 a1 u2 a2",
            r#"u: "Rename tides.txt" | a: "It is tides-2026" | u: "And back." | a: "Done.""#,
            "",
        ),
        recover: None,
    },
    Pain {
        file: "28-split-message",
        findings: "",
        vendor: reported(
            "u1 a1 u2 a2 u3 u4",
            r#"u: "Search for news " | a: "[Tool use interr" | u: "<command-name>/c" | a: web_search_tool_result | u: "Nothing?\n", "Try again tomorr" | a: "No response requ""#,
            "",
        ),
        recover: Some(reported(
            "u1 a1 u2 a2 u3 u4",
            r#"u: "Search for news " | a: server_tool_use, web_search_tool_result | u: "<command-name>/c", "Nothing?\n", "Try again tomorr" | a: "No response requ""#,
            "",
        )),
    },
];

/// `findings`, `path`, `messages` and `decisions` of a fixture.
fn report(file: &str, policy: Policy) -> [String; 4] {
    let fixture = Fixture::new(file);
    let source = Source::open(&fixture.path).unwrap();
    let index = Index::load(&source).unwrap();
    let missing = Tree::new(&index, Policy::Recover).missing_parents();
    let others = OtherFiles::search(&source, &index, &missing);
    let recover = Tree::with_others(&index, &others);
    let vendor = Tree::new(&index, Policy::Vendor);
    let tree = if policy == Policy::Recover {
        &recover
    } else {
        &vendor
    };

    let name = |entry_no| name(&index, entry_no);
    let mut findings = index.findings().to_vec();
    findings.extend(recover.findings(&recover.path()));
    let findings = findings.iter().map(|finding| {
        let line = finding.line.unwrap_or_default();
        format!("{} {line}", finding.code.as_str())
    });
    let path = tree.path();
    let entries = path.entries.iter().map(|entry| name(entry.entry_no()));
    let is_reported = |decision: &&Decision| {
        !matches!(
            decision,
            Decision::Leaf {
                reason: LeafReason::LastTip,
                ..
            }
        )
    };
    let decisions = path.decisions.iter().filter(is_reported).map(|decision| {
        let (what, entry) = (decision.name(), name(decision.entry()));
        match *decision {
            Decision::Bridge {
                parent, evidence, ..
            } => {
                format!("{what} {entry}-{} {}", name(parent), evidence.name())
            }
            Decision::Relink { parent, .. } => format!("{what} {entry}-{}", name(parent)),
            Decision::Gap { reason, .. } => format!("{what} {entry} {}", reason.name()),
            _ => format!("{what} {entry}"),
        }
    });
    let request = RequestOptions::new()
        .request(tree, &mut Bodies::new(&source))
        .unwrap();
    let messages: Vec<String> = if request.is_resumable() {
        let messages = request.messages.iter();
        messages
            .map(|message| rendered(&serde_json::to_value(message).unwrap()))
            .collect()
    } else {
        vec!["refused".to_owned()]
    };
    [
        findings.collect::<Vec<_>>().join(", "),
        entries.collect::<Vec<_>>().join(" "),
        messages.join(" | "),
        decisions.collect::<Vec<_>>().join(", "),
    ]
}

/// A fixture, or the copy with the image that is too large to be stored.
struct Fixture {
    path: PathBuf,
    _copy: Option<tempfile::NamedTempFile>,
}

impl Fixture {
    fn new(file: &str) -> Self {
        let path = folder().join(format!("{file}.jsonl"));
        let bytes = fs::read(&path).unwrap();
        let mark = b"@6MB@";
        let at = bytes.windows(mark.len()).position(|window| window == mark);
        let Some(at) = at else {
            return Self { path, _copy: None };
        };
        let mut copy = tempfile::NamedTempFile::new().unwrap();
        copy.write_all(&bytes[..at]).unwrap();
        copy.write_all(&vec![b'A'; 6 << 20]).unwrap();
        copy.write_all(&bytes[at + mark.len()..]).unwrap();
        Self {
            path: copy.path().to_owned(),
            _copy: Some(copy),
        }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v1/pains")
}

fn name(index: &Index, entry_no: EntryNo) -> String {
    let text = index.entry(entry_no).uuid().map(|id| index.id_text(id));
    let Some(text) = text else {
        return "?".to_owned();
    };
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    String::from_utf8(vec![byte(4), byte(6)]).unwrap()
}

fn rendered(message: &Value) -> String {
    let role = &message["role"].as_str().unwrap()[..1];
    let blocks = match &message["content"] {
        Value::String(text) => vec![short(text)],
        blocks => blocks.as_array().unwrap().iter().map(block).collect(),
    };
    format!("{role}: {}", blocks.join(", "))
}

fn block(block: &Value) -> String {
    let tool = |field: &str| {
        let id = block[field].as_str().unwrap();
        id.trim_start_matches("toolu_01")
            .trim_end_matches('Q')
            .to_owned()
    };
    match block["type"].as_str().unwrap() {
        "text" => short(block["text"].as_str().unwrap()),
        "tool_use" => format!("USE {}", tool("id")),
        "tool_result" => {
            let word = if block["is_error"] == true {
                "ERR"
            } else {
                "RES"
            };
            let content = match &block["content"] {
                Value::String(text) => short(text),
                Value::Array(blocks) => {
                    blocks.iter().map(self::block).collect::<Vec<_>>().join(" ")
                }
                _ => String::new(),
            };
            format!("{word} {} {content}", tool("tool_use_id"))
        }
        other => other.to_owned(),
    }
}

/// The start of a text, in quotes, with what cannot be seen spelt out.
fn short(text: &str) -> String {
    let start: String = text.chars().take(16).collect();
    format!("{start:?}")
}

/// Whether `reported` is as expected; `"…"` represents a text of which only the place matters.
fn is_as(expected: &str, reported: &str) -> bool {
    let mut rest = reported;
    let mut parts = expected.split("\"…\"");
    let first = parts.next().unwrap_or_default();
    let Some(behind) = rest.strip_prefix(first) else {
        return false;
    };
    rest = behind;
    for part in parts {
        let text = rest.strip_prefix('"').and_then(|text| text.split_once('"'));
        let Some((_, behind)) = text else {
            return false;
        };
        let Some(behind) = behind.strip_prefix(part) else {
            return false;
        };
        rest = behind;
    }
    rest.is_empty()
}

fn differences(policy: Policy, expected: impl Fn(&Pain) -> &Reported) -> String {
    let mut different = String::new();
    for pain in PAINS {
        let expected = expected(pain);
        let expected = [
            pain.findings,
            expected.path,
            expected.messages,
            expected.decisions,
        ];
        for (want, reported) in expected.into_iter().zip(report(pain.file, policy)) {
            if !is_as(want, &reported) {
                different += &format!("{}\n  want {want}\n  got {reported}\n", pain.file);
            }
        }
    }
    different
}

#[test]
fn under_vendor_what_hurts_a_session_costs_what_it_costs_in_the_client() {
    let different = differences(Policy::Vendor, |pain| &pain.vendor);
    assert!(different.is_empty(), "{different}");
}

#[test]
fn recover_restores_lost_history_where_it_can_be_proved() {
    let different = differences(Policy::Recover, |pain| {
        pain.recover.as_ref().unwrap_or(&pain.vendor)
    });
    assert!(different.is_empty(), "{different}");
}

#[test]
fn every_fixture_has_its_expectation() {
    let folder = folder();
    let mut files = Vec::new();
    crate::transcripts_under(&folder, &mut files);
    let files: Vec<_> = files
        .iter()
        .map(|file| file.strip_prefix(&folder).unwrap())
        .collect();
    let expected: Vec<_> = PAINS
        .iter()
        .map(|pain| format!("{}.jsonl", pain.file))
        .collect();
    assert!(
        files
            .iter()
            .all(|file| expected.iter().any(|name| Path::new(name) == *file))
    );
    assert_eq!(files.len(), expected.len());
}
