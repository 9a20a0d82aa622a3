use transcript_catalog::usage::{Prices, Terms, Tokens};

#[test]
fn bands_apply_to_the_whole_request() {
    let model = Prices::embedded().model("claude-haiku-5-5").expect("a row");
    let cost = |input| {
        model.cost(
            &Tokens {
                input,
                ..Tokens::default()
            },
            &Terms::default(),
        )
    };
    assert_eq!(cost(100_000), Some(100_000 * 100));
    assert_eq!(cost(100_001), Some(100_001 * 500));
}
