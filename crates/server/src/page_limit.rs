//! The query parameter `limit` of lists.

use crate::error::{ApiError, ApiResult};

/// The number of entries of a page: what the caller asks for, or the default.
pub(crate) fn page_limit(limit: Option<usize>, default: usize, most: usize) -> ApiResult<usize> {
    let limit = limit.unwrap_or(default);
    match (1..=most).contains(&limit) {
        true => Ok(limit),
        false => Err(ApiError::invalid("limit", format!("limit must be between 1 and {most}, got {limit}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_default_size_or_one_within_the_limit() {
        let sizes = [None, Some(1), Some(200), Some(0), Some(201)];
        let found = sizes.map(|size| page_limit(size, 50, 200).ok());
        assert_eq!(found, [Some(50), Some(1), Some(200), None, None]);
    }
}
