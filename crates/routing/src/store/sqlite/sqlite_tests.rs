use super::*;
use crate::records::Rating;
use crate::store::tests::{decision, rating_of, routing};

#[test]
fn a_rating_that_cannot_be_learned_from_is_not_saved() {
    let routing = routing();
    routing.save(&decision("r", 0)).expect("saved");
    routing.learn("r", &mut |_, _| {}).expect("learnt");
    let broken = "UPDATE router_class SET recent = 'nonsense'";
    routing.database.write(|transaction| transaction.execute(broken, [])).expect("written");
    assert!(routing.rate(&rating_of("r", Rating::Good, 1), &mut |_, _| {}).is_err());
    assert_eq!(routing.ratings().expect("counted"), Ratings::default());
}

#[test]
fn the_number_of_stored_choices_is_limited() {
    let routing = routing();
    let many = 10_003;
    routing
        .database
        .write(|transaction| {
            (0..many).try_for_each(|n| decisions::insert(transaction, &decision(&n.to_string(), n)))
        })
        .expect("written");
    routing.save(&decision("last", many)).expect("saved");
    assert_eq!(routing.count().expect("counted"), 10_000);
    assert_eq!(routing.find("3").expect("looked"), None);
    assert!(routing.find("last").expect("looked").is_some());
}
