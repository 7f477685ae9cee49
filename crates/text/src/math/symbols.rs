//! The commands of LaTeX that stand for one symbol.

/// What a symbol is, which decides its element and its spacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolKind {
    /// A name, such as a letter.
    Identifier,
    Operator,
    /// An operator whose limits stand above and below it in a formula of its own.
    LargeOperator,
    /// The same for one that is written as a word.
    LimitWord,
    /// A function that is written as a word.
    Function,
}

/// The symbol of a command without arguments.
pub(super) fn symbol(name: &str) -> Option<(SymbolKind, &'static str)> {
    if let Some(letter) = letter(name) {
        return Some((SymbolKind::Identifier, letter));
    }
    if let Some(operator) = relation(name).or_else(|| operator(name)).or_else(|| arrow(name)) {
        return Some((SymbolKind::Operator, operator));
    }
    let (kind, text) = match name {
        "sum" => (SymbolKind::LargeOperator, "∑"),
        "prod" => (SymbolKind::LargeOperator, "∏"),
        "coprod" => (SymbolKind::LargeOperator, "∐"),
        "bigcup" => (SymbolKind::LargeOperator, "⋃"),
        "bigcap" => (SymbolKind::LargeOperator, "⋂"),
        "bigoplus" => (SymbolKind::LargeOperator, "⨁"),
        "bigotimes" => (SymbolKind::LargeOperator, "⨂"),
        "bigvee" => (SymbolKind::LargeOperator, "⋁"),
        "bigwedge" => (SymbolKind::LargeOperator, "⋀"),
        "lim" => (SymbolKind::LimitWord, "lim"),
        "limsup" => (SymbolKind::LimitWord, "lim sup"),
        "liminf" => (SymbolKind::LimitWord, "lim inf"),
        "max" => (SymbolKind::LimitWord, "max"),
        "min" => (SymbolKind::LimitWord, "min"),
        "sup" => (SymbolKind::LimitWord, "sup"),
        "inf" => (SymbolKind::LimitWord, "inf"),
        "det" => (SymbolKind::LimitWord, "det"),
        "gcd" => (SymbolKind::LimitWord, "gcd"),
        "Pr" => (SymbolKind::LimitWord, "Pr"),
        "argmax" => (SymbolKind::LimitWord, "arg max"),
        "argmin" => (SymbolKind::LimitWord, "arg min"),
        _ => (SymbolKind::Function, function(name)?),
    };
    Some((kind, text))
}

fn letter(name: &str) -> Option<&'static str> {
    Some(match name {
        "alpha" => "α",
        "beta" => "β",
        "gamma" => "γ",
        "delta" => "δ",
        "epsilon" => "ϵ",
        "varepsilon" => "ε",
        "zeta" => "ζ",
        "eta" => "η",
        "theta" => "θ",
        "vartheta" => "ϑ",
        "iota" => "ι",
        "kappa" => "κ",
        "lambda" => "λ",
        "mu" => "μ",
        "nu" => "ν",
        "xi" => "ξ",
        "omicron" => "ο",
        "pi" => "π",
        "varpi" => "ϖ",
        "rho" => "ρ",
        "varrho" => "ϱ",
        "sigma" => "σ",
        "varsigma" => "ς",
        "tau" => "τ",
        "upsilon" => "υ",
        "phi" => "ϕ",
        "varphi" => "φ",
        "chi" => "χ",
        "psi" => "ψ",
        "omega" => "ω",
        "Gamma" => "Γ",
        "Delta" => "Δ",
        "Theta" => "Θ",
        "Lambda" => "Λ",
        "Xi" => "Ξ",
        "Pi" => "Π",
        "Sigma" => "Σ",
        "Upsilon" => "Υ",
        "Phi" => "Φ",
        "Psi" => "Ψ",
        "Omega" => "Ω",
        "infty" => "∞",
        "partial" => "∂",
        "nabla" => "∇",
        "ell" => "ℓ",
        "hbar" => "ℏ",
        "Re" => "ℜ",
        "Im" => "ℑ",
        "wp" => "℘",
        "aleph" => "ℵ",
        "emptyset" | "varnothing" => "∅",
        "angle" => "∠",
        "triangle" => "△",
        "square" | "Box" => "□",
        "blacksquare" => "■",
        "degree" => "°",
        "imath" => "ı",
        "jmath" => "ȷ",
        "top" => "⊤",
        "bot" => "⊥",
        "checkmark" => "✓",
        _ => return None,
    })
}

fn relation(name: &str) -> Option<&'static str> {
    Some(match name {
        "le" | "leq" => "≤",
        "ge" | "geq" => "≥",
        "leqslant" => "⩽",
        "geqslant" => "⩾",
        "ll" => "≪",
        "gg" => "≫",
        "ne" | "neq" => "≠",
        "lt" => "<",
        "gt" => ">",
        "approx" => "≈",
        "equiv" => "≡",
        "sim" => "∼",
        "simeq" => "≃",
        "cong" => "≅",
        "propto" => "∝",
        "doteq" => "≐",
        "prec" => "≺",
        "succ" => "≻",
        "in" => "∈",
        "notin" => "∉",
        "ni" => "∋",
        "subset" => "⊂",
        "supset" => "⊃",
        "subseteq" => "⊆",
        "supseteq" => "⊇",
        "subsetneq" => "⊊",
        "perp" => "⊥",
        "parallel" => "∥",
        "mid" => "∣",
        "nmid" => "∤",
        "models" => "⊨",
        "vdash" => "⊢",
        "colon" => ":",
        "coloneqq" => "≔",
        _ => return None,
    })
}

fn operator(name: &str) -> Option<&'static str> {
    Some(match name {
        "pm" => "±",
        "mp" => "∓",
        "times" => "×",
        "div" => "÷",
        "cdot" => "⋅",
        "ast" => "∗",
        "star" => "⋆",
        "circ" => "∘",
        "bullet" => "∙",
        "oplus" => "⊕",
        "ominus" => "⊖",
        "otimes" => "⊗",
        "odot" => "⊙",
        "cup" => "∪",
        "cap" => "∩",
        "setminus" | "backslash" => "∖",
        "wedge" | "land" => "∧",
        "vee" | "lor" => "∨",
        "neg" | "lnot" => "¬",
        "forall" => "∀",
        "exists" => "∃",
        "nexists" => "∄",
        "therefore" => "∴",
        "because" => "∵",
        "dagger" => "†",
        "int" => "∫",
        "iint" => "∬",
        "iiint" => "∭",
        "oint" => "∮",
        "ldots" | "dots" | "dotsc" | "dotsb" => "…",
        "cdots" => "⋯",
        "vdots" => "⋮",
        "ddots" => "⋱",
        "prime" => "′",
        "langle" => "⟨",
        "rangle" => "⟩",
        "lfloor" => "⌊",
        "rfloor" => "⌋",
        "lceil" => "⌈",
        "rceil" => "⌉",
        "lvert" | "rvert" | "vert" => "|",
        "lVert" | "rVert" | "Vert" => "‖",
        "lbrace" => "{",
        "rbrace" => "}",
        "lbrack" => "[",
        "rbrack" => "]",
        _ => return None,
    })
}

fn arrow(name: &str) -> Option<&'static str> {
    Some(match name {
        "to" | "rightarrow" => "→",
        "gets" | "leftarrow" => "←",
        "leftrightarrow" => "↔",
        "Rightarrow" => "⇒",
        "Leftarrow" => "⇐",
        "Leftrightarrow" => "⇔",
        "implies" | "Longrightarrow" => "⟹",
        "impliedby" | "Longleftarrow" => "⟸",
        "iff" | "Longleftrightarrow" => "⟺",
        "longrightarrow" => "⟶",
        "longleftarrow" => "⟵",
        "mapsto" => "↦",
        "longmapsto" => "⟼",
        "uparrow" => "↑",
        "downarrow" => "↓",
        "nearrow" => "↗",
        "searrow" => "↘",
        "hookrightarrow" => "↪",
        "rightleftharpoons" => "⇌",
        _ => return None,
    })
}

fn function(name: &str) -> Option<&'static str> {
    const FUNCTIONS: [&str; 24] = [
        "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
        "coth", "log", "ln", "lg", "exp", "deg", "dim", "ker", "arg", "hom", "mod", "bmod",
    ];
    let found = FUNCTIONS.into_iter().find(|known| *known == name)?;
    Some(if found == "bmod" { "mod" } else { found })
}

/// The mark that an accent sets above or below.
pub(super) fn accent(name: &str) -> Option<(AccentPlace, &'static str)> {
    Some(match name {
        "hat" | "widehat" => (AccentPlace::Above, "^"),
        "bar" | "overline" => (AccentPlace::Above, "‾"),
        "vec" | "overrightarrow" => (AccentPlace::Above, "→"),
        "dot" => (AccentPlace::Above, "˙"),
        "ddot" => (AccentPlace::Above, "¨"),
        "tilde" | "widetilde" => (AccentPlace::Above, "~"),
        "check" => (AccentPlace::Above, "ˇ"),
        "breve" => (AccentPlace::Above, "˘"),
        "overbrace" => (AccentPlace::Above, "⏞"),
        "underline" => (AccentPlace::Below, "_"),
        "underbrace" => (AccentPlace::Below, "⏟"),
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccentPlace {
    Above,
    Below,
}

/// The width of a command that only makes space, in em.
pub(super) fn space(name: &str) -> Option<&'static str> {
    Some(match name {
        "," | "thinspace" => "0.17em",
        ":" | ">" | "medspace" => "0.22em",
        ";" | "thickspace" => "0.28em",
        "!" => "-0.17em",
        " " | "nobreakspace" => "0.33em",
        "quad" => "1em",
        "qquad" => "2em",
        _ => return None,
    })
}
