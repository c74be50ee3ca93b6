//! Tests of klient's debug page in a real browser. They are a package of their own, because nothing else needs the library that drives
//! the browser.
