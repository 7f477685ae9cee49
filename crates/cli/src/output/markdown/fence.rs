//! The lines around a block of code.

/// What opened a block of code, and so has to close it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    sign: char,
    length: usize,
}

impl Fence {
    /// The fence that a line opens.
    pub fn opened_by(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let sign = text.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
        let rest = text.trim_start_matches(sign);
        let length = text.len() - rest.len();
        // Three signs, text and such a sign again are code within a line.
        let is_fence = length >= 3 && !(sign == '`' && rest.contains('`'));
        is_fence.then_some(Fence { sign, length })
    }

    pub fn is_closed_by(self, line: &str) -> bool {
        let text = line.trim();
        let rest = text.trim_start_matches(self.sign);
        rest.is_empty() && text.len() >= self.length && line.len() - line.trim_start_matches(' ').len() <= 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_closed_by_its_like() {
        let fence = Fence::opened_by("````rust").expect("a fence");
        assert!(fence.is_closed_by("`````  "));
        for line in ["```", "~~~~", "```` x", "    ````"] {
            assert!(!fence.is_closed_by(line), "{line}");
        }
        for line in ["``", "``` a `", "    ```", "text", ""] {
            assert_eq!(Fence::opened_by(line), None, "{line}");
        }
    }
}
