//! Attributes that cannot work, and the errors that a user sees. The cases fail in the macro, so that they need no other crate.

#[test]
fn errors_point_to_the_attribute_and_suggest_a_remedy() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
