use proptest::prelude::*;

use super::*;

/// The MathML inside of `<math>`.
fn line(source: &str) -> String {
    let whole = math_ml(source, FormulaPlace::Line).unwrap_or_else(|| panic!("{source} is unknown"));
    let (_, content) = whole.split_once('>').expect("a tag");
    content.strip_suffix("</math>").expect("its end").to_owned()
}

fn block(source: &str) -> String {
    let whole = math_ml(source, FormulaPlace::Block).unwrap_or_else(|| panic!("{source} is unknown"));
    let (_, content) = whole.split_once('>').expect("a tag");
    content.strip_suffix("</math>").expect("its end").to_owned()
}

#[test]
fn a_formula_has_its_place_and_its_source() {
    assert_eq!(
        math_ml("a<b", FormulaPlace::Line).as_deref(),
        Some("<math alttext=\"a&lt;b\"><mi>a</mi><mo>&lt;</mo><mi>b</mi></math>")
    );
    assert_eq!(
        math_ml(" x ", FormulaPlace::Block).as_deref(),
        Some("<math display=\"block\" alttext=\"x\"><mi>x</mi></math>")
    );
}

#[test]
fn the_common_parts_of_formulas() {
    for (source, expected) in [
        ("3.14x", "<mn>3.14</mn><mi>x</mi>"),
        ("1,000-2", "<mn>1,000</mn><mo>−</mo><mn>2</mn>"),
        ("\\frac{1}{x}", "<mfrac><mrow><mn>1</mn></mrow><mrow><mi>x</mi></mrow></mfrac>"),
        ("\\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        ("\\sqrt{x}", "<msqrt><mrow><mi>x</mi></mrow></msqrt>"),
        ("\\sqrt[3]{x}", "<mroot><mrow><mi>x</mi></mrow><mrow><mn>3</mn></mrow></mroot>"),
        ("x^2", "<msup><mi>x</mi><mrow><mn>2</mn></mrow></msup>"),
        ("x_i^{2n}", "<msubsup><mi>x</mi><mi>i</mi><mrow><mrow><mn>2</mn><mi>n</mi></mrow></mrow></msubsup>"),
        ("x^12", "<msup><mi>x</mi><mrow><mn>1</mn></mrow></msup><mn>2</mn>"),
        ("f''", "<msup><mi>f</mi><mrow><mo>′</mo><mo>′</mo></mrow></msup>"),
        ("\\alpha \\le \\infty", "<mi>α</mi><mo>≤</mo><mi>∞</mi>"),
        ("\\sin x", "<mi>sin</mi><mi>x</mi>"),
        ("\\mathbb{R}", "<mi>ℝ</mi>"),
        ("\\mathbf{v}", "<mi>𝐯</mi>"),
        ("\\mathrm{kg}", "<mi mathvariant=\"normal\">kg</mi>"),
        ("\\text{if } x", "<mtext>if </mtext><mi>x</mi>"),
        ("\\vec{v}", "<mover accent=\"true\"><mrow><mi>v</mi></mrow><mo>→</mo></mover>"),
        ("a \\not= b", "<mi>a</mi><mo>=\u{338}</mo><mi>b</mi>"),
        ("\\{a\\}", "<mo>{</mo><mi>a</mi><mo>}</mo>"),
        (
            "\\left(\\frac{a}{b}\\right]",
            "<mrow><mo stretchy=\"true\">(</mo><mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>\
             <mo stretchy=\"true\">]</mo></mrow>",
        ),
        (
            "\\begin{pmatrix} a & b \\\\ c & d \\\\ \\end{pmatrix}",
            "<mrow><mo stretchy=\"true\">(</mo><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr>\
             <mtr><mtd><mi>c</mi></mtd><mtd><mi>d</mi></mtd></mtr></mtable><mo stretchy=\"true\">)</mo></mrow>",
        ),
        ("\\boxed{42}", "<mrow class=\"boxed\"><mrow><mn>42</mn></mrow></mrow>"),
    ] {
        assert_eq!(line(source), expected, "{source}");
    }
}

#[test]
fn limits_stand_above_and_below_in_a_formula_of_its_own() {
    let parts = "<mo>∑</mo><mrow><mi>i</mi></mrow><mrow><mi>n</mi></mrow>";
    assert_eq!(block("\\sum_{i}^n"), format!("<munderover>{parts}</munderover>"));
    assert_eq!(line("\\sum_{i}^n"), format!("<msubsup>{parts}</msubsup>"));
    assert_eq!(block("\\lim_x"), "<munder><mi>lim</mi><mi>x</mi></munder>");
    assert_eq!(block("\\int_0^1"), "<msubsup><mo>∫</mo><mn>0</mn><mrow><mn>1</mn></mrow></msubsup>");
}

#[test]
fn aligned_lines_are_a_table() {
    assert_eq!(
        block("\\begin{aligned} x &= 1 \\\\[4pt] &= 2 \\end{aligned}"),
        "<mrow><mtable>\
         <mtr><mtd class=\"right\"><mi>x</mi></mtd><mtd class=\"left\"><mo>=</mo><mn>1</mn></mtd></mtr>\
         <mtr><mtd class=\"right\"></mtd><mtd class=\"left\"><mo>=</mo><mn>2</mn></mtd></mtr></mtable></mrow>"
    );
}

#[test]
fn what_is_unknown_or_malformed_has_no_mathml() {
    for source in [
        "",
        "  ",
        "\\unknown{x}",
        "\\href{javascript:x}{y}",
        "\\style{color:red}{x}",
        "{x",
        "x}",
        "x^",
        "x^2^3",
        "x_1_2",
        "\\frac{1}",
        "\\left( x",
        "x \\right)",
        "\\left< x \\right?",
        "a & b",
        "a \\\\ b",
        "\\begin{pmatrix} a",
        "\\begin{pmatrix} a \\end{bmatrix}",
        "\\begin{unknown} a \\end{unknown}",
        "\\text{a \\evil b}",
        "\\",
        "50%",
        "a # b",
        "\u{0}",
    ] {
        assert_eq!(math_ml(source, FormulaPlace::Line), None, "{source:?}");
    }
}

/// Deep and long formulas end, with an answer of bounded length.
#[test]
fn a_hostile_formula_is_bounded() {
    for sign in
        ["{", "\\hat", "\\sqrt[", "x^{", "\\frac{", "\\left(", "\\begin{matrix}", "'", "\\mathbf{", "&", "^"]
    {
        let source = sign.repeat(MAX_FORMULA / sign.len());
        math_ml(&source, FormulaPlace::Block);
    }
    assert_eq!(math_ml(&"x".repeat(MAX_FORMULA + 1), FormulaPlace::Line), None);
    let nested = |depth: usize| format!("{}x{}", "{".repeat(depth), "}".repeat(depth));
    assert!(math_ml(&nested(10), FormulaPlace::Line).is_some());
    assert_eq!(math_ml(&nested(100), FormulaPlace::Line), None);
    let wide = format!("\\begin{{matrix}}{}\\end{{matrix}}", "&".repeat(1000));
    let html = math_ml(&wide, FormulaPlace::Line).expect("a matrix");
    assert!(html.len() < wide.len() * 40, "{}", html.len());
}

proptest! {
    #[test]
    fn any_formula_becomes_well_formed_elements(source in "[a-z0-9^_{}\\\\&'()<>\" .=-]{0,40}") {
        if let Some(html) = math_ml(&source, FormulaPlace::Block) {
            let opened = html.matches('<').count() - html.matches("</").count();
            prop_assert_eq!(opened, html.matches("</").count(), "{}", html);
        }
    }

    #[test]
    fn any_text_is_no_panic(source in "\\PC{0,60}") {
        math_ml(&source, FormulaPlace::Line);
    }
}
