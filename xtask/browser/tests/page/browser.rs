//! A browser with the debug page open.

use std::{process::Stdio, time::Duration};

use fantoccini::{
    Client, ClientBuilder, Locator,
    actions::{InputSource as _, KeyAction, KeyActions},
    key::Key,
};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// A page in a browser.
#[derive(Clone)]
pub(crate) struct Page {
    pub(crate) client: Client,
}

/// Runs a test in a browser of its own. Without a browser, prints that the test is skipped.
pub(crate) async fn browse<R>(test: impl FnOnce(Page) -> R)
where
    R: Future<Output = ()> + Send + 'static,
{
    let Some((driver, url)) = driver().await else { return };
    let arguments =
        ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"];
    let options = json!({"goog:chromeOptions": {"args": arguments}});
    let Value::Object(capabilities) = options else { unreachable!() };
    let client =
        ClientBuilder::new(HttpConnector::new()).capabilities(capabilities).connect(&url).await.expect("a session");
    let result = tokio::spawn(test(Page { client: client.clone() })).await;
    // The driver ends the browser with the session, also when the test failed.
    client.close().await.unwrap();
    drop(driver);
    if let Err(error) = result {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// Starts a driver on a free port.
async fn driver() -> Option<(Child, String)> {
    let command = Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let Ok(mut child) = command else {
        println!("skipped: chromedriver is not installed (Debian's chromium and chromium-driver)");
        return None;
    };
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some((_, port)) = line.split_once("started successfully on port ") {
            let url = format!("http://127.0.0.1:{}", port.trim_end_matches('.'));
            // The driver must be able to write on.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Some((child, url));
        }
    }
    panic!("chromedriver did not say which port it listens on");
}

impl Page {
    /// Opens the debug page of a manager, and waits for its first snapshot.
    pub(crate) async fn open(&self, address: std::net::SocketAddr) {
        self.client.goto(&format!("http://localhost:{}/debug/klient", address.port())).await.unwrap();
        self.wait_for("#connection", |text| text.starts_with("live")).await;
    }

    /// Opens the story of a key by keyboard, and waits until its first summary contains a text.
    pub(crate) async fn story(&self, key: &str, expected: &str) -> String {
        self.client.find(Locator::Css("body")).await.unwrap().send_keys("/").await.unwrap();
        let search = self.client.active_element().await.unwrap();
        assert_eq!(search.attr("id").await.unwrap().as_deref(), Some("search"), "/ moves the focus to the search");
        search.clear().await.unwrap();
        search.send_keys(key).await.unwrap();
        search.send_keys(&Key::Enter.to_string()).await.unwrap();
        self.wait_for("#story-body .summary", |text| text.contains(expected)).await
    }

    /// Types a token on the page that asks for it, and sends it.
    pub(crate) async fn log_in(&self, token: &str) {
        let field = self.client.find(Locator::Id("token")).await.unwrap();
        field.send_keys(token).await.unwrap();
        field.send_keys(&Key::Enter.to_string()).await.unwrap();
    }

    /// Presses a key. The element with the focus receives it, also if an update of the page has replaced this element.
    pub(crate) async fn press(&self, key: Key) {
        let value = char::from(key);
        let keys = KeyActions::new("keyboard".to_owned());
        let keys = keys.then(KeyAction::Down { value }).then(KeyAction::Up { value });
        self.client.perform_actions(keys).await.unwrap();
    }

    /// Waits until the text of the first element that a selector matches satisfies a condition.
    pub(crate) async fn wait_for(&self, selector: &str, holds: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let waiting = async {
            loop {
                let text =
                    self.script("return document.querySelector(arguments[0])?.innerText ?? ''", json!(selector)).await;
                last = text.as_str().unwrap_or_default().to_owned();
                if holds(&last) {
                    return last.clone();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(60), waiting).await {
            Ok(text) => text,
            Err(_) => panic!("{selector} shows {last:?}"),
        }
    }

    /// Runs a script with one argument.
    pub(crate) async fn script(&self, script: &str, argument: Value) -> Value {
        self.client.execute(script, vec![argument]).await.unwrap()
    }

    /// Stores a picture of the page if `KLIENT_SCREENSHOTS` names a folder.
    pub(crate) async fn screenshot(&self, name: &str) {
        let Some(folder) = std::env::var_os("KLIENT_SCREENSHOTS") else { return };
        let picture = self.client.screenshot().await.unwrap();
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), picture).unwrap();
    }
}

/// A command of Chromium's own protocol.
#[derive(Debug)]
pub(crate) struct DevTools(pub(crate) Value);

impl fantoccini::wd::WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}
