// The debug page: follows the stream of snapshots, and shows the story of one key. All text is set as text, never as HTML.
"use strict";
(() => {
  const BASE = "/debug/klient/v1/";
  const $ = (id) => document.getElementById(id);
  let token = sessionStorage.getItem("klient-token") || "";
  let story = null;
  let storyTimer = null;
  let streaming = false;

  // Creates an element with attributes and children.
  function el(name, attributes, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key === "onclick") node.addEventListener("click", value);
      else node.setAttribute(key, value);
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined) node.append(child);
    }
    return node;
  }

  function time(seconds) {
    if (seconds === null || seconds === undefined) return "-";
    if (seconds < 0.001) return `${Math.round(seconds * 1e6)} us`;
    if (seconds < 1) return `${Math.round(seconds * 1e3)} ms`;
    if (seconds < 120) return `${seconds.toFixed(1)} s`;
    if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
    return `${(seconds / 3600).toFixed(1)} h`;
  }
  const ago = (seconds) => (seconds === null || seconds === undefined ? "never" : `${time(seconds)} ago`);
  function bytes(count) {
    for (const unit of ["B", "KiB", "MiB"]) {
      if (count < 1024) return `${count.toFixed(unit === "B" ? 0 : 1)} ${unit}`;
      count /= 1024;
    }
    return `${count.toFixed(1)} GiB`;
  }
  const counts = (map) => Object.entries(map).map(([name, count]) => `${name}: ${count}`).join(", ") || "-";

  // A word with a sign, so that the state is readable without colour.
  function state(word, kind) {
    const sign = { good: "\u2713 ", bad: "\u2717 ", busy: "\u2026 " }[kind] || "";
    return el("span", { class: `state ${kind || ""}` }, sign + word);
  }

  function table(caption, headers, rows) {
    const head = headers.map(([name, isNumber]) => el("th", { scope: "col", class: isNumber ? "number" : "" }, name));
    const body = rows.map((cells) =>
      el("tr", {}, cells.map((cell, index) => el("td", { class: headers[index][1] ? "number" : "" }, cell))));
    return el("div", { class: "scroll" },
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
  }

  function keyButton(key, controller) {
    return el("button", { type: "button", class: "link", onclick: () => open(key, controller) }, key);
  }

  // A small plot of one or two series.
  function plot(title, series) {
    const [width, height] = [240, 56];
    const top = Math.max(1, ...series.flatMap((one) => one.values));
    const ns = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(ns, "svg");
    const last = series.map((one) => `${one.name} ${round(one.values.at(-1) ?? 0)}`).join(", ");
    for (const [key, value] of [["width", width], ["height", height], ["role", "img"], ["viewBox", `0 0 ${width} ${height}`]]) svg.setAttribute(key, value);
    svg.setAttribute("aria-label", `${title}: ${last} now, at most ${round(top)}`);
    series.forEach((one, index) => {
      // One value is a flat line.
      const values = one.values.length === 1 ? [one.values[0], one.values[0]] : one.values;
      const line = document.createElementNS(ns, "polyline");
      const step = width / Math.max(1, values.length - 1);
      line.setAttribute("points", values.map((value, at) => `${(at * step).toFixed(1)},${(height - 2 - (value / top) * (height - 6)).toFixed(1)}`).join(" "));
      if (index) line.setAttribute("class", "second");
      svg.append(line);
    });
    return el("figure", {}, svg, el("figcaption", {}, `${title}: ${last} (top ${round(top)})`));
  }
  const round = (value) => (value >= 100 ? Math.round(value) : Math.round(value * 10) / 10);

  function rates(samples, field) {
    const out = [];
    for (let at = 1; at < samples.length; at++) {
      const seconds = samples[at - 1].ago - samples[at].ago;
      out.push(seconds > 0 ? Math.max(0, (samples[at][field] - samples[at - 1][field]) / seconds) : 0);
    }
    return out;
  }

  const PHASES = { notStarted: ["not started", "busy"], syncing: ["waiting for first lists", "busy"], running: ["running", "good"], stopped: ["stopped", "bad"] };

  function controller(report) {
    const samples = report.samples;
    const [phase, kind] = PHASES[report.phase] || [report.phase, ""];
    const list = (title, keys, value) => keys.length === 0 ? null : el("div", {},
      table(title, [["key"], ["", true]], keys.map((key) => [keyButton(key.key, report.name), value(key)])));
    return el("div", { class: "card", "data-controller": report.name },
      el("h3", {}, report.name, " ", state(phase, kind)),
      el("p", {}, `${report.queue.ready} ready, ${report.queue.delayed} delayed, ${report.queue.inProcess} of ${report.workers} workers busy, ` +
        `${report.queue.failing} failing; ${report.succeeded} reconciles succeeded, ${report.failed} failed ` +
        `(${report.panicked} panics, ${report.timedOut} timeouts), ${report.filtered} events ignored by predicates`),
      el("p", { class: "dim" }, `watches ${report.resources.join(", ")}; oldest ready key ${time(report.queue.oldest)}, longest reconcile ${time(report.queue.longestInProcess)}` +
        (report.history ? `; history of ${report.history.keys} keys in ${bytes(report.history.keyBytes)}` : "; no history")),
      samples.length < 2 ? null : el("div", { class: "plots" },
        plot("queue", [{ name: "ready", values: samples.map((one) => one.ready) }, { name: "delayed", values: samples.map((one) => one.delayed) }]),
        plot("per second", [{ name: "succeeded", values: rates(samples, "succeeded") }, { name: "failed", values: rates(samples, "failed") }])),
      el("div", { class: "lists" },
        list("in process", report.running, (key) => time(key.runningFor)),
        list("reconciled in a loop", report.hotLoops, (key) => `${key.perMinute} per minute`),
        list("failing most often", report.failing, (key) => `${key.failures} of ${key.turns} turns`),
        list("slowest", report.slowest, (key) => time(key.slowest)),
        list("busiest", report.busiest, (key) => `${key.perMinute} per minute`)));
  }

  const INFORMERS = { synced: "good", stale: "bad", denied: "bad", notServed: "bad", stopped: "bad", syncing: "busy", idle: "busy" };

  function informers(reports, caption) {
    return table(caption, [["resource"], ["state"], ["objects", true], ["bytes", true], ["events", true], ["last event"], ["relists"], ["unreadable"], ["last error"]],
      reports.map((one) => [one.resource, el("span", {}, state(one.state, INFORMERS[one.state]), one.staleFor === null ? "" : ` for ${time(one.staleFor)}`),
        `${one.objects}`, bytes(one.bytes), `${one.events}`, ago(one.eventAgo), counts(one.relists),
        one.unreadable ? `${one.unreadable}: ${one.unreadableKeys.join(", ")}` : "-", one.lastError || "-"]));
  }

  function shards(group) {
    const share = `${group.member || "this process"} works on ${group.open} slots of ${group.group}, table ${group.generation ?? "none"}` +
      (group.coordinator ? `, ${group.coordinator} coordinates` : ", no replica coordinates");
    const parts = [el("p", {}, state(share, group.problem ? "bad" : "good"))];
    if (group.problem) parts.push(el("p", {}, group.problem));
    if (group.moving) parts.push(el("p", {}, `${group.moving} slots move`));
    if (group.orphans) parts.push(el("p", {}, state(`${group.orphans} slots have no owner`, "bad")));
    parts.push(table("replicas", [["replica"], ["slots", true]], Object.entries(group.members).map(([name, slots]) => [name, `${slots}`])));
    return parts;
  }

  function show(id, isShown, ...children) {
    $(id).hidden = !isShown;
    const body = $(`${id}-body`);
    if (isShown && body) body.replaceChildren(...children);
  }

  function render(snapshot) {
    // The focus stays where it is: its element is replaced by an equal one.
    const place = focusedPlace();
    const leadership = snapshot.leadership;
    show("leadership", leadership !== null,
      leadership && (leadership.isLeader ? state("this process leads", "good")
        : state(leadership.leader ? `standby, ${leadership.leader} leads` : "standby, no process leads", "busy")));
    show("shards", snapshot.shards !== null, ...(snapshot.shards ? shards(snapshot.shards) : []));
    show("controllers", true, ...(snapshot.controllers.length ? snapshot.controllers.map(controller) : ["none"]));
    show("informers", true, informers(snapshot.informers, "local copies of objects"));
    show("webhooks", snapshot.webhooks.length > 0, table("requests to webhooks", [["path"], ["responses"], ["in flight", true], ["mean", true]],
      snapshot.webhooks.map((one) => [one.path, counts(one.requests), `${one.inFlight}`, time(one.meanLatency)])));
    show("connections", snapshot.connections.length > 0, table("requests to API servers", [["host"], ["responses"], ["retries", true], ["mean", true]],
      snapshot.connections.map((one) => [one.host, counts(one.requests), `${one.retries}`, time(one.meanLatency)])));
    if (place) buttonAt(place)?.focus({ preventScroll: true });
  }

  // The focused button of the overview: its text, its card, and how many equal ones come before it.
  function focusedPlace() {
    const focused = document.activeElement;
    if (!(focused instanceof HTMLButtonElement) || !$("overview").contains(focused)) return null;
    const place = { text: focused.textContent, card: focused.closest("[data-controller]")?.dataset.controller };
    return { ...place, index: buttonsAt(place).indexOf(focused) };
  }
  const buttonsAt = (place) => [...$("overview").querySelectorAll("button")].filter((button) =>
    button.textContent === place.text && button.closest("[data-controller]")?.dataset.controller === place.card);
  const buttonAt = (place) => buttonsAt(place)[place.index] || buttonsAt(place)[0];

  const reason = (one) => [one.source, one.object, one.kind].filter(Boolean).join(" ") + (one.resourceVersion ? ` (${one.resourceVersion})` : "");
  const reasons = (all, more) => all.map(reason).join(", ") + (more ? ` and ${more} more` : "") || "an event that an earlier turn had seen";
  const OUTCOMES = { succeeded: "good", failed: "bad", terminal: "bad", panicked: "bad", timedOut: "bad", leadershipLost: "bad" };

  function turns(one) {
    return table(`recent turns of ${one.turnCount}, ${one.failureCount} of which failed; ${one.turnsPerMinute} in a minute`,
      [["ended"], ["because of"], ["version", true], ["queued", true], ["took", true], ["outcome"], ["wrote"], ["next"]],
      one.turns.map((turn) => [ago(turn.endedAgo), reasons(turn.reasons, turn.moreReasons), `${turn.seenVersion ?? "-"}`, time(turn.queuedFor),
        time(turn.took) + (turn.waitedForOwnWrites > 0.001 ? ` after ${time(turn.waitedForOwnWrites)} for own writes` : ""),
        el("span", {}, state(turn.outcome, OUTCOMES[turn.outcome]), turn.error ? ` ${turn.error}` : ""),
        turn.writes.map((write) => `${write.resource} ${write.object} ${write.resourceVersion ? `(${write.resourceVersion})` : "deleted"}`).join(", ") + (turn.moreWrites ? ` and ${turn.moreWrites} more` : "") || "-",
        turn.nextIn === null ? "-" : `in ${time(turn.nextIn)}`]));
  }

  function storyOf(one) {
    const object = one.object;
    return el("div", { class: "card", "data-state": one.state.state, "data-story": one.controller },
      el("h3", {}, one.controller),
      el("p", { class: "summary" }, one.summary),
      el("dl", {},
        el("dt", {}, "cached object"), el("dd", {}, object ? `version ${object.resourceVersion}${object.generation ? `, generation ${object.generation}` : ""}${object.isDeleting ? ", being deleted" : ""}` : "none"),
        one.pending.length ? [el("dt", {}, "queued because of"), el("dd", {}, one.pending.map(reason).join(", "))] : null,
        one.filtered ? [el("dt", {}, "last ignored event"), el("dd", {}, `${one.filtered.source}, ${ago(one.filtered.ago)}, by ${one.filtered.predicate} (${one.filtered.count} in all)`)] : null),
      one.fights.length ? table("fields that two managers write in turn", [["field"], ["of"], ["managers"], ["changes of owner", true]],
        one.fights.map((fight) => [fight.field, `${fight.resource} ${fight.object}`, fight.managers.join(" and "), `${fight.changes}`])) : null,
      one.hasHistory ? turns(one) : el("p", { class: "dim" }, "turns are not recorded"),
      informers(one.informers, "informers of this controller"));
  }

  async function request(path) {
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const response = await fetch(BASE + path, { headers, cache: "no-store" });
    if (response.status === 401 || response.status === 403) {
      login((await response.text()).trim());
      throw new Error("not allowed");
    }
    if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
    return response;
  }

  function login(problem) {
    $("login").hidden = false;
    $("overview").hidden = true;
    $("login-problem").textContent = token ? problem : "";
    $("connection").textContent = "not allowed";
    if (!$("login").contains(document.activeElement)) $("token").focus();
  }

  // Follows the stream of snapshots, and connects again when it ends.
  async function follow() {
    if (streaming) return;
    streaming = true;
    try {
      const response = await request("events");
      $("login").hidden = true;
      $("overview").hidden = false;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        const events = (rest + value).split("\n\n");
        rest = events.pop();
        const last = events.filter((event) => event.startsWith("data: ")).at(-1);
        if (last) {
          const snapshot = JSON.parse(last.slice(6));
          $("connection").textContent = `live, up for ${time(snapshot.uptime)}`;
          render(snapshot);
        }
      }
    } catch (error) {
      if (!$("login").hidden) { streaming = false; return; }
      $("connection").textContent = `disconnected: ${error.message}; connecting again`;
    }
    streaming = false;
    setTimeout(follow, 1000);
  }

  async function refresh() {
    if (!story) return;
    const wanted = story;
    const query = new URLSearchParams({ key: wanted.key });
    if (wanted.controller) query.set("controller", wanted.controller);
    try {
      const stories = await (await request(`why?${query}`)).json();
      if (story !== wanted) return;
      $("story-body").replaceChildren(...(stories.stories.length ? stories.stories.map(storyOf) : ["no controller"]));
    } catch (error) {
      if (story === wanted) $("story-body").replaceChildren(el("p", { role: "alert" }, error.message));
    }
    if (story === wanted) storyTimer = setTimeout(refresh, 1000);
  }

  function open(key, controller) {
    clearTimeout(storyTimer);
    story = { key, controller };
    $("story-title").textContent = key;
    $("story-body").replaceChildren("loading");
    $("story").hidden = false;
    $("story").focus();
    history.replaceState(null, "", `#${encodeURIComponent(key)}`);
    refresh();
  }

  function close() {
    story = null;
    clearTimeout(storyTimer);
    $("story").hidden = true;
    history.replaceState(null, "", "#");
    $("search").focus();
  }

  let searches = 0;
  async function find(text) {
    const number = ++searches;
    $("found").hidden = !text;
    if (!text) return;
    try {
      const found = await (await request(`keys?${new URLSearchParams({ search: text, limit: "50" })}`)).json();
      if (number !== searches) return;
      $("found-body").replaceChildren(found.keys.length === 0 ? "no key contains this text" :
        table(found.isTruncated ? "the first 50 keys that contain this text" : found.keys.length === 1 ? "1 key contains this text" : `${found.keys.length} keys contain this text`,
          [["key"], ["controller"], ["last turn"], ["turns", true], ["failures", true]],
          found.keys.map((key) => [keyButton(key.key, key.controller), key.controller, key.last, `${key.turns}`, `${key.failures}`])));
    } catch (error) {
      if (number === searches) $("found-body").replaceChildren(error.message);
    }
  }

  let typing = null;
  $("search").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => find($("search").value.trim()), 150);
  });
  $("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("search").value.trim();
    if (text) open(text, null);
  });
  $("login-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token = $("token").value.trim();
    sessionStorage.setItem("klient-token", token);
    $("token").value = "";
    follow();
  });
  $("story-close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !(event.target instanceof HTMLInputElement)) {
      event.preventDefault();
      $("search").focus();
    } else if (event.key === "Escape" && story) close();
  });
  if (location.hash.length > 1) open(decodeURIComponent(location.hash.slice(1)), null);
  follow();
})();
