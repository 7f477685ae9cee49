//! Plans a word search. Ranking a chunk costs about a microsecond, finding it almost nothing, and a common word is in a million
//! chunks: so rare words select the chunks, and common words only help to rank them.

/// About the number of ranked chunks per question.
pub(crate) const MAX_RANKED: u64 = 5_000;

/// The number of chunks that are counted for words that only help to rank.
const MAX_COUNTED: u64 = 64_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordPlan {
    /// In the syntax of the index.
    pub(crate) expression: String,
    /// About the number of matching chunks if there are too many; then only the newest are ranked.
    pub(crate) too_many: Option<u64>,
    /// The words that selected no chunk, for a second attempt.
    pub(crate) left: Vec<String>,
}

/// `rows` returns about the number of matching chunks.
pub(crate) fn plan<E>(terms: &[String], mut rows: impl FnMut(&str) -> Result<u64, E>) -> Result<WordPlan, E> {
    let mut counted = Vec::with_capacity(terms.len());
    for term in terms {
        counted.push((rows(term)?, term.as_str()));
    }
    counted.sort_by_key(|(count, _)| *count);

    let (choosing, others) = counted.split_at(within(&counted, MAX_RANKED));
    if choosing.is_empty() {
        return together(&counted, rows);
    }
    let helping = &others[..within(others, MAX_COUNTED)];
    let expression = match helping {
        [] => any(choosing),
        helping => format!("({} OR {}) AND ({})", any(choosing), any(helping), any(choosing)),
    };
    let left = others.iter().map(|(_, term)| (*term).to_owned()).collect();
    Ok(WordPlan { expression, too_many: None, left })
}

/// The number of rarest words that are in at most `most` chunks together.
fn within(counted: &[(u64, &str)], most: u64) -> usize {
    let mut sum = 0;
    let fitting = counted.iter().take_while(|(count, _)| {
        sum += count;
        sum <= most
    });
    fitting.count()
}

fn any(words: &[(u64, &str)]) -> String {
    words.iter().map(|(_, term)| *term).collect::<Vec<_>>().join(" OR ")
}

/// All words are common: selects chunks with the rarest and another one.
fn together<E>(counted: &[(u64, &str)], mut rows: impl FnMut(&str) -> Result<u64, E>) -> Result<WordPlan, E> {
    let Some(((rarest_count, rarest), others)) = counted.split_first() else {
        return Ok(WordPlan { expression: String::new(), too_many: None, left: Vec::new() });
    };
    let others = &others[..within(others, MAX_COUNTED).max(1).min(others.len())];
    if !others.is_empty() {
        let expression = format!("{rarest} AND ({})", any(others));
        let count = rows(&expression)?;
        if count > 0 {
            let too_many = (count > MAX_RANKED).then_some(count);
            return Ok(WordPlan { expression, too_many, left: vec![(*rarest).to_owned()] });
        }
    }
    Ok(WordPlan { expression: (*rarest).to_owned(), too_many: Some(*rarest_count), left: Vec::new() })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn planned(counts: &[(&str, u64)], of_pairs: u64) -> WordPlan {
        let terms: Vec<String> = counts.iter().map(|(term, _)| (*term).to_owned()).collect();
        let rows = |expression: &str| {
            let known = counts.iter().find(|(term, _)| *term == expression);
            Ok::<_, Infallible>(known.map_or(of_pairs, |(_, count)| *count))
        };
        let Ok(plan) = plan(&terms, rows);
        plan
    }

    #[test]
    fn rare_words_select_and_common_ones_rank() {
        let plan = planned(&[("the", 900_000), ("boiler", 300), ("winter", 20_000), ("valve", 90)], 0);
        assert_eq!(
            plan,
            WordPlan {
                expression: "(valve OR boiler OR winter) AND (valve OR boiler)".to_owned(),
                too_many: None,
                left: vec!["winter".to_owned(), "the".to_owned()],
            }
        );
        assert_eq!(planned(&[("a", 1), ("b", 2)], 0).expression, "a OR b");
    }

    #[test]
    fn common_words_are_searched_together() {
        let common = [("house", 40_000), ("water", 30_000), ("time", 20_000), ("the", 900_000)];
        let plan = planned(&common, 4_000);
        assert_eq!(plan.expression, "time AND (water)");
        let rarer = [("house", 30_000), ("water", 30_000), ("time", 20_000)];
        assert_eq!(planned(&rarer, 4_000).expression, "time AND (house OR water)");
        assert_eq!(plan.too_many, None);
        assert_eq!(planned(&common, 400_000).too_many, Some(400_000));
    }

    #[test]
    fn a_common_word_by_itself_is_ranked_in_part() {
        let plan = planned(&[("water", 300_000)], 0);
        assert_eq!((plan.expression.as_str(), plan.too_many), ("water", Some(300_000)));
    }
}
