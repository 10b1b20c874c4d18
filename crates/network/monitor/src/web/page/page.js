"use strict";
// The page of the monitor. It gets a document each second (server-sent events), and keeps the history of its charts. Texts of other
// programs only ever become text nodes.

const SECONDS = 900;
const view = { minutes: 3, paused: false, cursor: null, document: null, selected: null, socketSeries: null };
// Series of links by the key of the link: titles, columns, times, and the values of each column.
const series = new Map();
const charts = new Set();

// --- text and numbers -------------------------------------------------------------------------------------------------------

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function draw(tag, attributes = {}, text = null) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== null) node.textContent = text;
  return node;
}

// Makes the content of an element equal to these nodes. Equal nodes stay, and with them the focus, a selected text, and the place of a
// screen reader.
function update(element, ...nodes) {
  const fresh = nodes.filter((node) => node !== null && node !== undefined);
  const isAlike = (old, node) => old.nodeName === node.nodeName && old.dataset?.socket === node.dataset?.socket;
  fresh.forEach((node, place) => {
    const old = element.childNodes[place];
    if (!old) {
      element.append(node);
    } else if (!isAlike(old, node)) {
      old.replaceWith(node);
    } else if (old instanceof Text) {
      if (old.data !== node.data) old.data = node.data;
    } else {
      for (const { name, value } of node.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
      // `focusScrolled` sets this one.
      for (const name of old.getAttributeNames()) if (name !== "tabindex" && !node.hasAttribute(name)) old.removeAttribute(name);
      update(old, ...node.childNodes);
    }
  });
  while (element.childNodes.length > fresh.length) element.lastChild.remove();
}

function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 100) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  return size >= 0.1 ? value.toFixed(2) : value.toPrecision(2);
}

function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function rate(bps) {
  if (!known(bps)) return "-";
  if (bps >= 1e9) return `${digits(bps / 1e9)} Gbit/s`;
  if (bps >= 1e6) return `${digits(bps / 1e6)} Mbit/s`;
  if (bps >= 1e3) return `${digits(bps / 1e3)} kbit/s`;
  return `${digits(bps)} bit/s`;
}

const ms = (value) => (known(value) ? `${digits(value)} ms` : "-");
const percent = (value) => (known(value) ? `${digits(value)} %` : "-");
const perSecond = (value) => (known(value) ? `${digits(value)}/s` : "-");

function userHint(hidden) {
  if (!hidden) return null;
  return make("p", { class: "dim" },
    `${hidden} rows of other users are not shown. Root sees them, and so does a reader with the token.`);
}

// A box for a table. It is scrolled where the table is wider, also by keys.
function scrolled(title, name, ...children) {
  return make("div", { class: `scroll ${name}`, role: "group", "aria-label": title }, ...children);
}

// Lets the keyboard reach the boxes that have something to scroll.
function focusScrolled() {
  for (const box of document.querySelectorAll(".scroll")) {
    if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0"); else box.removeAttribute("tabindex");
  }
}

function command(text) {
  return make("code", {}, text);
}

// --- charts -----------------------------------------------------------------------------------------------------------------

// In units of the drawing, which are about as long as pixels, so that texts have their size also on a phone.
const narrow = matchMedia("(max-width: 40rem)");
let WIDTH = 0;
const HEIGHT = 150, LEFT = 76, RIGHT = 8, TOP = 8, BOTTOM = 20;

class Chart {
  // `lines`: [{ column, title }]; `format`: words of a value; `source()`: the series. For a screen reader it is a slider: the keys move in
  // time, and its value is what the lines have there.
  constructor(title, lines, format, source) {
    Object.assign(this, { title, lines, format, source });
    this.svg = draw("svg", { role: "slider", "aria-label": title, tabindex: "0" });
    this.legend = make("ul", { class: "legend" });
    this.node = make("figure", { class: "chart" }, make("h4", {}, title), this.svg, this.legend);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => setCursor(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("blur", () => setCursor(null));
    charts.add(this);
  }

  range() {
    const { at } = this.source();
    const end = at.length ? at[at.length - 1] : Date.now() / 1000;
    return [end - view.minutes * 60, end];
  }

  point(event) {
    const box = this.svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * WIDTH;
    const [from, to] = this.range();
    const share = (x - LEFT) / (WIDTH - LEFT - RIGHT);
    setCursor(share < 0 || share > 1 ? null : from + share * (to - from));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    const [start, to] = this.range();
    const from = Math.max(start, this.source().at[0] ?? start);
    const next = view.cursor === null && step === -1 ? to : (view.cursor ?? to) + step;
    setCursor(Math.min(to, Math.max(from, next)));
  }

  // The place of the last point at a time or before it; -1 without one.
  placeAt(time) {
    const { at } = this.source();
    let place = at.length - 1;
    while (place >= 0 && at[place] > time + 0.5) place -= 1;
    return place;
  }

  render() {
    const data = this.source();
    const [from, to] = this.range();
    const first = data.at.findIndex((at) => at >= from);
    const columns = this.lines.map((line) => data.columns.indexOf(line.column));
    let most = 0;
    for (const column of columns) {
      for (let place = Math.max(first, 0); place < data.at.length; place += 1) {
        const value = data.values[column]?.[place];
        if (known(value)) most = Math.max(most, value);
      }
    }
    most = niceTop(most);
    const x = (at) => LEFT + (at - from) / (to - from) * (WIDTH - LEFT - RIGHT);
    const y = (value) => HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM);
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      const level = y(share * most);
      parts.push(draw("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: level, y2: level }));
      parts.push(draw("text", { x: LEFT - 4, y: level + 4, "text-anchor": "end" }, this.format(share * most)));
    }
    parts.push(draw("text", { x: LEFT, y: HEIGHT - 5 }, `${view.minutes} min ago`));
    parts.push(draw("text", { x: WIDTH - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, "now"));
    columns.forEach((column, number) => {
      let path = "", open = false;
      for (let place = Math.max(first, 0); place < data.at.length && first >= 0; place += 1) {
        const value = data.values[column]?.[place];
        if (!known(value)) { open = false; continue; }
        path += `${open ? "L" : "M"}${x(data.at[place]).toFixed(1)} ${y(value).toFixed(1)}`;
        open = true;
      }
      if (path) parts.push(draw("path", { class: `c${number}`, d: path }));
    });
    const place = this.placeAt(view.cursor === null ? to : view.cursor);
    if (view.cursor !== null && place >= 0) {
      const at = x(data.at[place]);
      parts.push(draw("line", { class: "cursor", x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM }));
    }
    this.svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    this.svg.replaceChildren(...parts);
    const values = this.lines.map((line, number) => {
      const value = place >= 0 ? data.values[columns[number]]?.[place] : null;
      return { title: line.title, text: known(value) ? this.format(value) : "-" };
    });
    update(this.legend, ...values.map(({ title, text }, number) =>
      make("li", {}, make("i", { class: `c${number}` }), `${title}: `, make("b", {}, text))));
    // A screen reader speaks each change of the value that has the focus: only the keys change it.
    if (view.cursor === null && document.activeElement === this.svg) return;
    const words = values.map(({ title, text }) => `${title} ${text}`).join(", ");
    const now = view.cursor === null ? to : view.cursor;
    const when = view.cursor !== null && place >= 0 ? `, at ${new Date(data.at[place] * 1000).toLocaleTimeString()}` : "";
    const value = { min: Math.floor(from), max: Math.ceil(to), now: Math.round(now), text: words + when };
    for (const [name, its] of Object.entries(value)) this.svg.setAttribute(`aria-value${name}`, its);
  }
}

function niceTop(most) {
  if (!(most > 0)) return 1;
  const scale = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].find((step) => step * scale >= most) * scale;
}

let frame = 0;
function setCursor(time) {
  view.cursor = time;
  if (!frame) frame = requestAnimationFrame(() => { frame = 0; renderCharts(); });
}

function renderCharts() {
  for (const chart of charts) {
    if (chart.node.isConnected) chart.render(); else charts.delete(chart);
  }
}

// --- history ----------------------------------------------------------------------------------------------------------------

// The key of a link: of a direction of a router, or of a queue in the kernel, which has no process.
const keyOfRouter = (pid, isReverse) => `${pid}/${isReverse ? 1 : 0}`;
const keyOfKernel = (name) => `kernel/${name}`;

// Appends the points of a document to a series, and forgets those that are older than the longest view.
// Appends the points that are new: two requests at a time may have answers with the same ones.
function append(to, document) {
  const last = lastOf(to);
  const known = document.at_unix_s.filter((at) => at <= last).length;
  to.at.push(...document.at_unix_s.slice(known));
  document.values.forEach((values, column) => to.values[column].push(...values.slice(known)));
  const surplus = to.at.length - SECONDS;
  if (surplus > 0) [to.at, ...to.values].forEach((list) => list.splice(0, surplus));
}

function empty(document) {
  return { title: document.title, columns: document.columns, at: [], values: document.columns.map(() => []) };
}

const lastOf = (one) => (one && one.at.length ? one.at[one.at.length - 1] : 0);

async function fetchJson(path) {
  const query = new URLSearchParams(location.search);
  const token = query.get("token");
  const separator = path.includes("?") ? "&" : "?";
  const answer = await fetch(token ? `${path}${separator}token=${encodeURIComponent(token)}` : path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

const fetchHistory = () => fetchJson(`api/history?since=${Math.max(0, ...[...series.values()].map(lastOf))}`);

function addHistory(documents) {
  for (const document of documents) {
    const key = document.interface ? keyOfKernel(document.interface) : keyOfRouter(document.pid, document.is_reverse);
    if (!series.has(key)) series.set(key, empty(document));
    append(series.get(key), document);
  }
}

// --- links ------------------------------------------------------------------------------------------------------------------

const REASONS = {
  early: "dropped early by the queue, before it was full: a loss slows its sender down, so that the queue stays short",
  overflow: "dropped because the queue was full. More arrives than the link can carry, or the limit of the queue is low",
  oversize: "dropped because they are longer than the outgoing interface takes",
  runt: "dropped because they are too short to be a frame",
  unsent: "not taken by the outgoing interface. It is or was down, or its own queue is full",
  memory: "dropped because there was no memory for them",
};
// Sieve alone knows the fair share of a flow.
const REASONS_OF_SIEVE = {
  ...REASONS,
  early: "dropped early by the queue. A flow that sends more than the fair share loses packets, so that it slows down and the queue stays short",
};

let shown = "";

const isSieve = (direction) => Boolean(direction.sieve);

// The links of the host: the directions of its routers, and its queues in the kernel.
function links() {
  const ofRouters = view.document.routers.flatMap(({ pid, router }) => [false, true].map((isReverse) => (
    { key: keyOfRouter(pid, isReverse), direction: isReverse ? router.reverse : router.forward, isKernel: false })));
  const ofKernel = view.document.kernel_queues.map((it) => (
    { key: keyOfKernel(it.interface), direction: it.statistics, isKernel: true }));
  return [...ofRouters, ...ofKernel];
}

function renderLinks() {
  const place = document.getElementById("links");
  const all = links();
  const problem = view.document.kernel_queues_problem ?? null;
  const unlisted = view.document.unlisted_routers;
  const key = JSON.stringify([problem, unlisted, ...all.map((it) => [it.key, it.direction.direction, it.direction.queue])]);
  if (key !== shown) {
    shown = key;
    const cards = all.map(linkCard);
    if (!cards.length) cards.push(noLinks());
    if (problem) cards.push(make("p", { class: "dim" }, `Queues in the kernel are not shown: ${problem}`));
    if (unlisted) cards.push(make("p", { class: "dim" }, `${unlisted} more routers are not listed; cutline top lists them.`));
    place.replaceChildren(...cards);
  }
  for (const it of all) updateLink(it);
}

function noLinks() {
  return make("div", { class: "card" },
    make("p", {}, "No router publishes on this host. A router shapes what passes it, and keeps the queue short. This command starts one:"),
    make("p", {}, command("sudo cutline router up --lan eth0 --wan eth1 --rate 19Mbit --reverse-rate 95Mbit")),
    make("p", {}, "No queue in its kernel is known, either. Newer kernels can have one, without a process, for what leaves an interface:"),
    make("p", {}, command("sudo cutline qdisc add dev eth0 --rate 19Mbit")));
}

function linkCard({ key, direction, isKernel }) {
  const source = () => series.get(key) ?? { columns: [], at: [], values: [] };
  const line = (column, title) => ({ column, title });
  const waits = new Chart("Waiting time in the queue",
    [line("wait_p99_ms", "99th percentile"), line("wait_p50_ms", "median")], ms, source);
  const carried = new Chart("Traffic",
    [line("sent_bps", "sent"), line("received_bps", "received"), line("rate_bps", "rate of the link")], rate, source);
  const lost = new Chart("Dropped and marked packets", [line("dropped_early_per_s", "early"),
    line("dropped_overflow_per_s", "queue full"), line("dropped_other_per_s", "other"), line("marked_per_s", "marked (ECN)")],
  perSecond, source);
  const all = [waits, carried, lost];
  if (isSieve(direction)) {
    all.push(new Chart("Traffic of flows below and above the fair share",
      [line("below_fair_share_bps", "below: does not wait behind others"), line("above_fair_share_bps", "above: waits for its own flow")],
      rate, source));
  }
  // The charts of all links have the same titles.
  const name = `name-${key}`;
  for (const chart of all) chart.svg.setAttribute("aria-describedby", name);
  // Only a router lists flows and hosts.
  const lists = isKernel ? [] : [
    make("h4", {}, "Flows that send most: their waits, shares and drops"), scrolled("Flows", "flows"),
    make("h4", {}, "Hosts"), scrolled("Hosts", "hosts")];
  return make("article", { class: "card", id: `link-${key}` },
    make("h3", { class: "name", id: name }), make("p", { class: "dim about" }),
    make("div", { class: "charts" }, ...all.map((chart) => chart.node)),
    make("h4", {}, "Why packets wait or are dropped"), make("ul", { class: "facts why" }),
    ...lists,
    make("h4", {}, "Packets by delay hint"), scrolled("Packets by delay hint", "hints"));
}

const share = (part, whole) => (whole ? percent((100 * part) / whole) : "-");
const end = (address, port) => (!known(port) ? address : address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);

function flowTable(direction) {
  const head = ["from", "to", "rate", "share of link", "wait p50", "wait p99", "mean wait", "longest wait", "dropped", "marked", "hint"];
  const rows = (direction.flows ?? []).map((it) => [end(it.source, it.source_port), end(it.destination, it.destination_port),
    rate(it.recent_bps), share(it.recent_bps, direction.rate_bps), ms(it.wait_p50_ms), ms(it.wait_p99_ms), ms(it.mean_wait_ms), ms(it.longest_wait_ms),
    share(it.dropped.packets, it.received.packets), share(it.marked.packets, it.received.packets), it.hint]);
  return rows.length ? table(head, rows, (column) => column >= 2)
    : make("p", { class: "dim" }, "No flow is listed: none has sent in the last seconds, or this reader may not see them.");
}

function hostTable(direction) {
  const head = ["host", "as", "flows", "rate", "share of link", "mean wait", "dropped"];
  const rows = (direction.hosts ?? []).map((it) => [it.host, it.side, it.flows, rate(it.recent_bps),
    share(it.recent_bps, direction.rate_bps), ms(it.mean_wait_ms), percent(it.dropped_percent)]);
  return rows.length ? table(head, rows, (column) => column >= 2) : make("p", { class: "dim" }, "No host is listed.");
}

function updateLink({ key, direction, isKernel }) {
  const card = document.getElementById(`link-${key}`);
  if (!card) return;
  const queue = isKernel ? `${direction.queue} in the kernel` : direction.queue;
  update(card.querySelector(".name"), document.createTextNode(`${direction.direction}: ${queue} at ${rate(direction.rate_bps)}`));
  const backlog = direction.backlog;
  card.querySelector(".about").textContent = `${backlog.packets} packets wait (${digits(backlog.bytes / 1000)} kB). `
    + (direction.sieve ? `Fair share of a flow: ${rate(direction.sieve.fair_share_bps)}.` : "");
  update(card.querySelector(".why"), ...reasons(key, direction).map((text) => make("li", {}, text)));
  if (!isKernel) {
    update(card.querySelector(".flows"), flowTable(direction));
    update(card.querySelector(".hosts"), hostTable(direction));
  }
  const head = ["hint", "sent", "dropped", "mean wait", "longest wait"];
  const rows = direction.hints.map((hint) => [hint.hint, hint.departed.packets, hint.dropped.packets,
    ms(hint.mean_wait_ms), ms(hint.longest_wait_ms)]);
  update(card.querySelector(".hints"),
    rows.length ? table(head, rows, () => true) : make("p", { class: "dim" }, "No packet has passed yet."));
}

function reasons(key, direction) {
  const data = series.get(key);
  const last = (column) => {
    const place = data ? data.columns.indexOf(column) : -1;
    return place < 0 ? null : data.values[place][data.values[place].length - 1];
  };
  const found = [];
  const sent = last("sent_bps"), wait = last("wait_p99_ms");
  if (known(sent) && sent > 0.95 * direction.rate_bps) {
    const waiting = isSieve(direction) ? "Packets of flows above the fair share" : "Packets";
    found.push(`The link is full: ${rate(sent)} of ${rate(direction.rate_bps)}. ${waiting} wait, `
      + `${known(wait) ? `99 of 100 at most ${ms(wait)}` : "in the queue"}.`);
  } else if (known(sent)) {
    found.push(`The link has room: ${rate(sent)} of ${rate(direction.rate_bps)}. Packets hardly wait here.`);
  }
  const rates = { early: last("dropped_early_per_s"), overflow: last("dropped_overflow_per_s") };
  for (const [reason, words] of Object.entries(isSieve(direction) ? REASONS_OF_SIEVE : REASONS)) {
    const count = direction.dropped[reason]?.packets ?? 0;
    if (!count) continue;
    const now = known(rates[reason]) ? `${digits(rates[reason])} packets a second now, ` : "";
    found.push(`${now}${count} packets since the start were ${words}.`);
  }
  if (!found.length) found.push("Nothing is known yet: the first second has not passed.");
  return found;
}

// --- tables -----------------------------------------------------------------------------------------------------------------

function table(head, rows, isNumber, onRow = null) {
  const cell = (tag, text, column) => make(tag, { class: isNumber(column) ? "n" : null, "data-title": tag === "td" ? head[column] : null,
    scope: tag === "th" ? "col" : null }, text instanceof Node ? text : String(text));
  const body = rows.map((row, number) => {
    const line = make("tr", {}, ...row.map((text, column) => cell("td", text, column)));
    if (onRow) onRow(line, number);
    return line;
  });
  return make("table", { class: "stack" }, make("thead", {}, make("tr", {}, ...head.map((text, column) => cell("th", text, column)))),
    make("tbody", {}, ...body));
}

// --- sockets ----------------------------------------------------------------------------------------------------------------

function renderSockets() {
  const place = document.getElementById("sockets");
  const { sockets, unlisted_sockets: unlisted, hidden_rows: hidden } = view.document;
  if (!sockets.length) {
    update(place, make("div", { class: "card" },
      make("p", {}, "No program with QoS sockets publishes for this reader. Programs that use libcutline (Rust, C or Python) appear by "
        + "themselves. A gateway gives unchanged programs QoS sockets:"),
      make("p", {}, command("cutline gateway near --tcp 8080=192.0.2.1:5210 --class file")), userHint(hidden)));
    document.getElementById("socket").hidden = true;
    return;
  }
  const focused = document.activeElement?.dataset?.socket;
  const head = ["program", "to", "state", "sent", "received", "delay p99", "loss", "violations"];
  const rows = sockets.map((it) => {
    const used = usedDirection(it);
    const violations = [...it.send.violations ?? [], ...it.receive.violations ?? []];
    const name = make("button", { type: "button", "data-socket": socketKey(it),
      "aria-pressed": String(view.selected === socketKey(it)) }, `${it.program} (${it.pid})`);
    return [name, `${it.transport} ${it.peer}`, it.state, rate(it.send.throughput_bps), rate(it.receive.throughput_bps),
      ms(used.last_delay?.p99_ms), percent(used.loss_percent),
      violations.length ? make("span", { class: "bad" }, violations.map((one) => one.measure).join(", "))
        : make("span", { class: "good" }, "none")];
  });
  update(place, scrolled("QoS sockets", "card", table(head, rows, (column) => column >= 3 && column <= 6),
    unlisted ? make("p", { class: "dim" }, `${unlisted} more sockets carry less and are not listed; cutline top lists them.`) : null,
    userHint(hidden)));
  // A row that has moved has a new button.
  if (focused && document.activeElement?.dataset?.socket !== focused) place.querySelector(`[data-socket="${focused}"]`)?.focus();
  renderSocket();
}

const socketKey = (it) => `${it.pid}/${it.socket}`;
const usedDirection = (it) => (it.receive.received_bytes >= it.send.sent_bytes ? it.receive : it.send);

async function select(key) {
  view.selected = view.selected === key ? null : key;
  history.replaceState(null, "", view.selected ? `#socket=${view.selected}` : location.pathname + location.search);
  view.socketSeries = null;
  socketCharts = null;
  renderSockets();
  addSocket(await fetchSocket());
  renderSocket();
  renderCharts();
}

// Returns the selected socket and its new points; null without one, or if it has ended.
async function fetchSocket() {
  const { selected } = view;
  if (!selected) return null;
  const [pid, socket] = selected.split("/");
  try {
    return [selected, await fetchJson(`api/history/socket?pid=${pid}&socket=${socket}&since=${lastOf(view.socketSeries)}`)];
  } catch { return null; }
}

function addSocket(found) {
  if (!found) view.socketSeries = null;
  // The reader may have selected another one meanwhile.
  else if (found[0] === view.selected) append(view.socketSeries ??= empty(found[1]), found[1]);
}

let socketCharts = null;

function renderSocket() {
  const place = document.getElementById("socket");
  const it = view.document.sockets.find((one) => socketKey(one) === view.selected);
  place.hidden = !it;
  if (!it) return;
  if (!socketCharts) {
    const source = () => view.socketSeries ?? { columns: [], at: [], values: [] };
    const line = (column, title) => ({ column, title });
    const all = [
      new Chart("Throughput", [line("sent_bps", "sent"), line("received_bps", "received")], rate, source),
      new Chart("Delay and jitter", [line("delay_p99_ms", "delay, 99th percentile"), line("jitter_p99_ms", "jitter")], ms, source),
      new Chart("Loss", [line("loss_percent", "messages lost")], percent, source)];
    // The charts of a link may have the same titles.
    for (const chart of all) chart.svg.setAttribute("aria-describedby", "name-socket");
    socketCharts = make("div", { class: "charts" }, ...all.map((chart) => chart.node));
    place.replaceChildren(make("article", { class: "card" }, make("h3", { class: "name", id: "name-socket" }), make("div", { class: "pair" }), socketCharts));
  }
  place.querySelector(".name").textContent = `${it.program} (${it.pid}): ${it.transport} ${it.local} to ${it.peer}`;
  const directions = [["sends", it.send], ["receives", it.receive]].filter(([, one]) => one.effective || one.sent_messages);
  update(place.querySelector(".pair"), ...directions.map(([title, one]) => directionFacts(title, one, it)));
}

/** A value of a measure in its unit. */
function measured(measure, value) {
  return `${digits(value)} ${{ rate: "messages/s", loss: "%" }[measure] ?? "ms"}`;
}

// The waits of both applications, and the datagrams that the receiving host dropped, as far as there were any.
function hostFacts(direction) {
  const { held_ms: held, unread_ms: unread, overflowed_datagrams: dropped } = direction;
  return [
    held > 0 ? `The sending application was held back for ${ms(held)} in all.` : null,
    unread > 0 ? `The receiving application left data unread for ${ms(unread)} in all.` : null,
    dropped > 0 ? `${dropped} datagrams did not fit into the receive buffer.` : null,
  ].filter((text) => text !== null);
}

function directionFacts(title, direction, it) {
  const facts = [
    `Agreed: ${direction.effective || "nothing is demanded"}.`,
    `Messages: ${direction.sent_messages} sent, ${direction.received_messages} received, ${direction.lost_messages} lost.`,
    ...hostFacts(direction),
    ...(direction.violations ?? []).map((one) =>
      `Violated for ${digits(one.for_s)} s: ${one.measure} is ${measured(one.measure, one.measured)}, the limit is ${measured(one.measure, one.limit)}. Origin: ${one.origin}.`),
  ];
  const limits = direction.limits ?? [];
  // One or two axes make no area.
  if (limits.length < 3 && direction.sent_messages) {
    facts.push(...limits.map((one) => `Limit of the ${one.measure}: ${measured(one.measure, one.worst)}; the worst measured is `
      + `${known(one.worst_measured) ? measured(one.measure, one.worst_measured) : "not known yet"}.`));
  }
  if (title === "sends" && it.reservation !== "none") {
    facts.push(`Reservation: ${it.reservation}${known(it.reserved_bps) ? `, ${rate(it.reserved_bps)}` : ""}${it.refusal ? `: ${it.refusal}` : ""}.`);
  }
  const region = radar(direction);
  const key = "Dashed: the limits. Filled: the worst measured values; inside the dashed line they violate a limit.";
  return make("div", {}, make("h4", {}, title === "sends" ? "Sending" : "Receiving"), region, region && make("p", { class: "dim" }, key),
    make("ul", { class: "facts" }, ...facts.map((text) => make("li", {}, text))));
}

// The region of operation: the centre of each axis is the worst acceptable value and beyond, its end the best (QUANTA section 4).
function radar(direction) {
  const limits = direction.limits ?? [];
  if (limits.length < 3 || !direction.sent_messages) return null;
  const violated = new Set((direction.violations ?? []).map((one) => one.measure));
  const size = 150, reach = 90;
  const at = (number, share) => {
    const angle = 2 * Math.PI * number / limits.length - Math.PI / 2;
    return [Math.cos(angle) * reach * share, Math.sin(angle) * reach * share];
  };
  // An odd number of axes leaves room below.
  const bottom = Math.max(...limits.map((_, number) => at(number, 1.2)[1])) + 12;
  const svg = draw("svg", { class: "radar", viewBox: `${-1.25 * size} ${-size * 0.8} ${2.5 * size} ${size * 0.8 + bottom}`, role: "img" });
  // A third of the way out is the limit; the best value is at the end; values worse than the limit are within the third.
  const place = (limit, value) => {
    if (!known(value)) return 1;
    const length = limit.best - limit.worst;
    const position = length === 0 ? (value === limit.best ? 1 : -1) : Math.min(1, (value - limit.worst) / length);
    return Math.max(0.05, (position * 2 + 1) / 3);
  };
  const polygon = (share) => limits.map((limit, number) => at(number, share(limit)).map((it) => it.toFixed(1)).join(",")).join(" ");
  limits.forEach((limit, number) => {
    const [x, y] = at(number, 1);
    svg.append(draw("line", { class: "axis", x1: 0, y1: 0, x2: x, y2: y }));
    const [tx, ty] = at(number, 1.2);
    svg.append(draw("text", { x: tx, y: ty + 4, "text-anchor": Math.abs(tx) < 10 ? "middle" : tx > 0 ? "start" : "end" },
      `${limit.measure}${violated.has(limit.measure) ? " !" : ""}`));
  });
  svg.append(draw("polygon", { class: "limit", points: polygon(() => 1 / 3) }));
  const isMeasured = limits.some((limit) => known(limit.worst_measured));
  if (isMeasured) svg.append(draw("polygon", { class: violated.size ? "seen bad" : "seen", points: polygon((limit) => place(limit, limit.worst_measured)) }));
  const words = limits.map((limit) => `${limit.measure}: worst ${known(limit.worst_measured) ? digits(limit.worst_measured) : "not measured"}, `
    + `limit ${digits(limit.worst)}`).join("; ");
  svg.setAttribute("aria-label", `Region of operation. ${words}`);
  svg.append(draw("title", {}, words));
  return svg;
}

// --- programs ---------------------------------------------------------------------------------------------------------------

function renderPrograms() {
  const place = document.getElementById("programs");
  const { programs, unlisted_programs: unlisted } = view.document;
  const rows = programs.map((it) => [it.program, it.pid, it.method, it.hint, it.sockets, it.messages, it.bytes].map((cell) => cell ?? "-"));
  const head = ["program", "process", "method", "hint", "sockets", "messages", "bytes"];
  update(place, scrolled("Programs", "card", rows.length ? table(head, rows, (column) => column >= 3)
    : make("p", {}, "No program runs under it. It marks and paces the packets of an unchanged program: ",
      command("cutline exec --class video -- ffplay rtp://192.0.2.1:5004")),
    unlisted ? make("p", { class: "dim" }, `${unlisted} more programs have sent less and are not listed; cutline top lists them.`) : null));
}

// --- reservations -----------------------------------------------------------------------------------------------------------

// The reservations of the host: those for sessions of RSVP, and those at this host alone (the service `local`).
function reservations(status) {
  const ofSessions = status.sessions.flatMap((session) => session.reservations.map((it) => [session.destination,
    it.senders.length ? it.senders.join(", ") : "all", it.interface ?? "this host", it.next ?? "-", it.style, it.bucket]));
  const local = status.local.map((it) => [it.flow.destination, it.flow.source, it.interface ?? "none: not in effect", "-", "local", it.bucket]);
  return [...ofSessions, ...local];
}

function renderReservations() {
  const place = document.getElementById("reservations");
  const { status, unlisted_sessions: sessions, unlisted_local: local } = view.document.reservations ?? {};
  const rows = (status ? reservations(status) : []).map((row) => {
    const bucket = row.pop();
    return [...row, rate(bucket.rate_bps), `${bucket.bucket_bytes} B`];
  });
  const head = ["destination", "senders", "interface", "next hop", "style", "rate", "bucket"];
  const links = (status?.interfaces ?? []).map((it) => make("p", { class: it.problem ? "bad" : "dim" },
    `${it.name}: ${rate(it.reserved_bps)} of ${rate(it.reservable_bps)} reserved.${it.problem ? ` ${it.problem}` : ""}`));
  const nothing = status ? "Nothing is reserved." : "No reservations are shown: cutlined shows them with a table [monitor] in its file, to "
    + "root and to readers with the token.";
  update(place, scrolled("Reservations", "card", rows.length ? table(head, rows, (column) => column >= 5) : make("p", {}, nothing), ...links,
    sessions || local ? make("p", { class: "dim" }, `${sessions} more sessions and ${local} more local reservations are not listed; `
      + "cutline reservations lists them.") : null));
}

// --- life -------------------------------------------------------------------------------------------------------------------

function state(text, isBad = false) {
  const node = document.getElementById("state");
  if (node.textContent !== text) node.textContent = text;
  node.classList.toggle("bad", isBad);
}

// The likely cause of bad delivery in the last seconds, as `cutline doctor explain` says it.
function renderExplanation(explanation) {
  const box = document.getElementById("explain");
  if (explanation.interval_s < 2) return;
  const lines = [make("p", { class: explanation.findings.length > 0 ? "bad" : "" }, explanation.summary)];
  for (const [place, finding] of explanation.findings.entries()) {
    if (place > 0) lines.push(make("p", {}, `Also: ${finding.sentence}`));
    lines.push(make("p", { class: "dim" }, `${finding.strength}, from ${finding.rests_on.join(", ")}. What to do next: ${finding.do_next}`));
  }
  if (explanation.summary.startsWith("nothing was examined")) {
    for (const line of explanation.not_examined) lines.push(make("p", { class: "dim" }, `Not examined: ${line}`));
  }
  update(box, ...lines);
}

function renderAll() {
  renderLinks();
  renderSockets();
  renderPrograms();
  renderReservations();
  renderCharts();
  focusScrolled();
}

async function onDocument(document) {
  if (view.paused) return;
  let found = null, problem = null;
  try {
    found = [await fetchHistory(), await fetchSocket(), await fetchJson("api/explain")];
  } catch (error) {
    problem = `the history cannot be read: ${error.message}`;
  }
  // The reader may have paused the page meanwhile. Then nothing changes.
  if (view.paused) return;
  view.document = document;
  if (found) {
    const [documents, socket, explanation] = found;
    addHistory(documents);
    addSocket(socket);
    renderExplanation(explanation);
  }
  state(problem ?? `live: ${document.publishers} ${document.publishers === 1 ? "process publishes" : "processes publish"}`, problem !== null);
  renderAll();
}

function connect() {
  const token = new URLSearchParams(location.search).get("token");
  const events = new EventSource(token ? `api/events?token=${encodeURIComponent(token)}` : "api/events");
  events.onmessage = (event) => onDocument(JSON.parse(event.data));
  events.onerror = () => state("the monitor does not answer; trying again. Is cutlined, or cutline monitor, running?", true);
}

for (const button of document.querySelectorAll("[data-minutes]")) {
  button.addEventListener("click", () => {
    view.minutes = Number(button.dataset.minutes);
    for (const other of document.querySelectorAll("[data-minutes]")) other.setAttribute("aria-pressed", String(other === button));
    renderCharts();
  });
}
document.getElementById("pause").addEventListener("click", (event) => {
  view.paused = !view.paused;
  event.currentTarget.textContent = view.paused ? "Resume" : "Pause";
  if (view.paused) state("paused");
});
document.getElementById("sockets").addEventListener("click", (event) => {
  const button = event.target.closest("[data-socket]");
  if (button) select(button.dataset.socket);
});
// A window that is resized, a phone that is turned, a page that is zoomed.
function resize() {
  // A chart has the width of a narrow window without the space beside it: the padding of the page and of a card.
  WIDTH = narrow.matches ? Math.min(340, innerWidth - 58) : 480;
  renderCharts();
  focusScrolled();
}
addEventListener("resize", resize);
resize();
// A link to the page may name a socket.
view.selected = location.hash.match(/^#socket=(\d+\/\d+)$/)?.[1] ?? null;
connect();
