//! Letters in another style, such as the ℝ of `\mathbb{R}`.

/// The styles that have characters of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LetterStyle {
    Bold,
    DoubleStruck,
    Script,
    Fraktur,
    SansSerif,
    Monospace,
}

impl LetterStyle {
    pub(super) fn of_command(name: &str) -> Option<Self> {
        Some(match name {
            "mathbf" | "boldsymbol" | "bm" | "bf" => LetterStyle::Bold,
            "mathbb" | "Bbb" => LetterStyle::DoubleStruck,
            "mathcal" | "mathscr" | "cal" => LetterStyle::Script,
            "mathfrak" => LetterStyle::Fraktur,
            "mathsf" => LetterStyle::SansSerif,
            "mathtt" => LetterStyle::Monospace,
            _ => return None,
        })
    }

    /// The character in this style, or as it is where the style does not have it.
    pub(super) fn apply(self, letter: char) -> char {
        self.exception(letter).or_else(|| self.in_block(letter)).unwrap_or(letter)
    }

    /// Letters that had a place in Unicode before their alphabet.
    fn exception(self, letter: char) -> Option<char> {
        let found = match (self, letter) {
            (LetterStyle::DoubleStruck, 'C') => 'ℂ',
            (LetterStyle::DoubleStruck, 'H') => 'ℍ',
            (LetterStyle::DoubleStruck, 'N') => 'ℕ',
            (LetterStyle::DoubleStruck, 'P') => 'ℙ',
            (LetterStyle::DoubleStruck, 'Q') => 'ℚ',
            (LetterStyle::DoubleStruck, 'R') => 'ℝ',
            (LetterStyle::DoubleStruck, 'Z') => 'ℤ',
            (LetterStyle::Script, 'B') => 'ℬ',
            (LetterStyle::Script, 'E') => 'ℰ',
            (LetterStyle::Script, 'F') => 'ℱ',
            (LetterStyle::Script, 'H') => 'ℋ',
            (LetterStyle::Script, 'I') => 'ℐ',
            (LetterStyle::Script, 'L') => 'ℒ',
            (LetterStyle::Script, 'M') => 'ℳ',
            (LetterStyle::Script, 'R') => 'ℛ',
            (LetterStyle::Script, 'e') => 'ℯ',
            (LetterStyle::Script, 'g') => 'ℊ',
            (LetterStyle::Script, 'o') => 'ℴ',
            (LetterStyle::Fraktur, 'C') => 'ℭ',
            (LetterStyle::Fraktur, 'H') => 'ℌ',
            (LetterStyle::Fraktur, 'I') => 'ℑ',
            (LetterStyle::Fraktur, 'R') => 'ℜ',
            (LetterStyle::Fraktur, 'Z') => 'ℨ',
            _ => return None,
        };
        Some(found)
    }

    fn in_block(self, letter: char) -> Option<char> {
        // The places of A, a and 0; scripts and Fraktur have no digits.
        let (capital, small, digit) = match self {
            LetterStyle::Bold => (0x1D400, 0x1D41A, Some(0x1D7CE)),
            LetterStyle::DoubleStruck => (0x1D538, 0x1D552, Some(0x1D7D8)),
            LetterStyle::Script => (0x1D49C, 0x1D4B6, None),
            LetterStyle::Fraktur => (0x1D504, 0x1D51E, None),
            LetterStyle::SansSerif => (0x1D5A0, 0x1D5BA, Some(0x1D7E2)),
            LetterStyle::Monospace => (0x1D670, 0x1D68A, Some(0x1D7F6)),
        };
        let place = match letter {
            'A'..='Z' => capital + (u32::from(letter) - u32::from('A')),
            'a'..='z' => small + (u32::from(letter) - u32::from('a')),
            '0'..='9' => digit? + (u32::from(letter) - u32::from('0')),
            _ => return None,
        };
        char::from_u32(place)
    }
}
