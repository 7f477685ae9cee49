//! Plans a word search. Ranking a chunk costs about a microsecond, finding it almost nothing, and a common word is in a million
//! chunks: so rare words select the chunks, and common words only help to rank them.

/// About the number of ranked chunks per question.
pub(crate) const MAX_RANKED: u64 = 5_000;

/// The number of chunks that are counted for words that only help to rank.
const MAX_COUNTED: u64 = 64_000;

/// The weights of a hit in the title and in the text.
pub(crate) const TITLE_WEIGHT: f64 = 4.0;
pub(crate) const TEXT_WEIGHT: f64 = 1.0;

/// A word or a phrase in the syntax of the index, and about the number of chunks that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedTerm {
    pub(crate) term: String,
    pub(crate) chunks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordPlan {
    /// A selected chunk has a word of each list.
    pub(crate) selecting: Vec<Vec<CountedTerm>>,
    /// Words that count for the rank of a selected chunk, and select none.
    pub(crate) helping: Vec<CountedTerm>,
    /// About the number of matching chunks if there are too many; then only the newest are ranked.
    pub(crate) too_many: Option<u64>,
    /// The words that selected no chunk, for a second attempt.
    pub(crate) left: Vec<CountedTerm>,
}

/// `rows` returns about the number of chunks that have a word of each list.
pub(crate) fn plan<E>(
    mut terms: Vec<CountedTerm>,
    rows: impl FnOnce(&[Vec<CountedTerm>]) -> Result<u64, E>,
) -> Result<WordPlan, E> {
    terms.sort_by_key(|term| term.chunks);
    let (choosing, others) = terms.split_at(within(&terms, MAX_RANKED));
    if choosing.is_empty() {
        return together(&terms, rows);
    }
    Ok(WordPlan {
        selecting: vec![choosing.to_vec()],
        helping: others[..within(others, MAX_COUNTED)].to_vec(),
        too_many: None,
        left: others.to_vec(),
    })
}

/// The number of rarest words that are in at most `most` chunks together.
fn within(terms: &[CountedTerm], most: u64) -> usize {
    let mut sum = 0;
    let fitting = terms.iter().take_while(|term| {
        sum += term.chunks;
        sum <= most
    });
    fitting.count()
}

/// All words are common: selects chunks with the rarest and another one.
fn together<E>(
    terms: &[CountedTerm],
    rows: impl FnOnce(&[Vec<CountedTerm>]) -> Result<u64, E>,
) -> Result<WordPlan, E> {
    let Some((rarest, others)) = terms.split_first() else {
        return Ok(WordPlan { selecting: Vec::new(), helping: Vec::new(), too_many: None, left: Vec::new() });
    };
    let others = &others[..within(others, MAX_COUNTED).max(1).min(others.len())];
    let only_rarest = vec![rarest.clone()];
    if !others.is_empty() {
        let selecting = vec![only_rarest.clone(), others.to_vec()];
        let count = rows(&selecting)?;
        if count > 0 {
            let too_many = (count > MAX_RANKED).then_some(count);
            return Ok(WordPlan { selecting, helping: Vec::new(), too_many, left: only_rarest });
        }
    }
    Ok(WordPlan {
        selecting: vec![only_rarest],
        helping: Vec::new(),
        too_many: Some(rarest.chunks),
        left: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn planned(counts: &[(&str, u64)], of_pairs: u64) -> WordPlan {
        let term = |(term, chunks): &(&str, u64)| CountedTerm { term: (*term).to_owned(), chunks: *chunks };
        let Ok(plan) = plan(counts.iter().map(term).collect(), |_| Ok::<_, Infallible>(of_pairs));
        plan
    }

    fn names(terms: &[CountedTerm]) -> String {
        terms.iter().map(|term| term.term.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn selecting(plan: &WordPlan) -> Vec<String> {
        plan.selecting.iter().map(|terms| names(terms)).collect()
    }

    #[test]
    fn rare_words_select_and_common_ones_rank() {
        let plan = planned(&[("the", 900_000), ("boiler", 300), ("winter", 20_000), ("valve", 90)], 0);
        assert_eq!(selecting(&plan), ["valve boiler"]);
        let WordPlan { helping, too_many, left, .. } = &plan;
        assert_eq!((names(helping), *too_many, names(left)), ("winter".into(), None, "winter the".into()));
        assert_eq!(selecting(&planned(&[("a", 1), ("b", 2)], 0)), ["a b"]);
    }

    #[test]
    fn common_words_are_searched_together() {
        let common = [("house", 40_000), ("water", 30_000), ("time", 20_000), ("the", 900_000)];
        let plan = planned(&common, 4_000);
        assert_eq!(selecting(&plan), ["time", "water"]);
        let rarer = [("house", 30_000), ("water", 30_000), ("time", 20_000)];
        assert_eq!(selecting(&planned(&rarer, 4_000)), ["time", "house water"]);
        assert_eq!(plan.too_many, None);
        assert_eq!(planned(&common, 400_000).too_many, Some(400_000));
    }

    #[test]
    fn a_common_word_by_itself_is_ranked_in_part() {
        let plan = planned(&[("water", 300_000)], 0);
        assert_eq!((selecting(&plan), plan.too_many), (vec!["water".to_owned()], Some(300_000)));
    }
}
