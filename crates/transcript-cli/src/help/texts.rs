//! The texts of `transcript help`, about what several commands share.

/// The texts, by their names. The first line of each is its title.
pub(crate) const TOPICS: [(&str, &str); 8] = [
    ("sessions", include_str!("topics/sessions.txt")),
    ("queries", include_str!("topics/queries.txt")),
    ("recover", include_str!("topics/recover.txt")),
    ("archive", include_str!("topics/archive.txt")),
    ("files", include_str!("topics/files.txt")),
    ("environment", include_str!("topics/environment.txt")),
    ("json", include_str!("topics/json.txt")),
    ("exit-codes", include_str!("topics/exit-codes.txt")),
];

/// Returns the names and titles of the topics.
pub(crate) fn titles() -> Vec<(String, String)> {
    let titled = TOPICS.iter().map(|(name, text)| {
        let title = text.split('\n').next().unwrap_or_default();
        (
            (*name).to_owned(),
            title.trim_start_matches("# ").to_owned(),
        )
    });
    titled.collect()
}
