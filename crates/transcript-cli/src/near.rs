//! Words that are nearly the same: typing errors.

/// Returns the nearest of these names to a word, and what it stands for; `None` if none is near: more than a third of it differs.
pub(crate) fn nearest<T: Ord>(
    word: &str,
    names: impl IntoIterator<Item = (String, T)>,
) -> Option<T> {
    let typed_len = word.chars().count();
    let near = names.into_iter().filter_map(|(name, of)| {
        let len = name.chars().count();
        let is_near = |distance: usize| distance * 3 <= len.max(3);
        // Each letter more or less is a difference, so most names need not be compared.
        let distance = is_near(len.abs_diff(typed_len)).then(|| distance(word, &name))?;
        is_near(distance).then_some((distance, of))
    });
    near.min().map(|(_, of)| of)
}

/// Returns the number of letters to add, remove, replace or swap with the next to make one word from another.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for (i, a) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in to.iter().enumerate() {
            let replaced = rows[i][j] + usize::from(a != b);
            let mut least = replaced.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == to[j - 1] && from[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}
