// Updates the numbers of a page. Without this script, a page shows the numbers of the time when it was generated.
// The texts change in place and the nodes of the page stay, so nothing flickers, and the focus and the selection are kept.
"use strict";

// The prefix of all paths, if a proxy serves the console below one.
const base = new URL(document.currentScript.src).pathname.replace(/\/assets\/live\.js$/, "");

const problem = document.getElementById("problem");
const verdict = document.querySelector(".verdict");

function write(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

function dim(node, text) {
  if (node) node.classList.toggle("zero", text === "0" || text === "–");
}

function tell(why) {
  problem.hidden = !why;
  write(problem, why);
}

function numbers(place, of) {
  for (const cell of place.querySelectorAll("[data-cell]")) {
    const name = cell.dataset.cell;
    if (of[name] === undefined) continue;
    write(cell, of[name]);
    dim(cell.closest("td, .numbers > div"), of[name]);
  }
  const states = place.querySelector("[data-states]");
  if (states && of.states) badges(states, of.states);
  const line = place.querySelector("polyline");
  if (line && line.getAttribute("points") !== of.points) line.setAttribute("points", of.points);
}

function badges(place, states) {
  states.forEach((state, at) => {
    const badge = place.children[at] || place.appendChild(document.createElement("span"));
    const name = "state " + state;
    if (badge.className !== name) badge.className = name;
    write(badge, state);
  });
  while (place.children.length > states.length) place.lastChild.remove();
}

function judge(is) {
  verdict.className = "verdict " + is.state;
  write(document.getElementById("verdict"), is.text);
  write(document.getElementById("held"), is.held);
  for (const [name, sum] of is.sums) {
    const place = document.querySelector(`[data-sum="${name}"]`);
    write(place, sum);
    dim(place && place.parentElement, sum);
  }
  const list = document.getElementById("troubles");
  is.troubles.forEach((trouble, at) => {
    const line = list.children[at] || list.appendChild(document.createElement("li"));
    let link = line.querySelector("a");
    if (!link) {
      link = document.createElement("a");
      line.replaceChildren(link, " ", document.createElement("span"));
    }
    line.className = trouble.state;
    const where = base + "/queues/" + trouble.queue + trouble.place;
    if (link.getAttribute("href") !== where) link.setAttribute("href", where);
    write(link, trouble.queue);
    write(line.querySelector("span"), trouble.what);
  });
  while (list.children.length > is.troubles.length + (is.more > 0 ? 1 : 0)) list.lastChild.remove();
  if (is.more > 0) {
    const last = list.children[is.troubles.length] || list.appendChild(document.createElement("li"));
    last.className = "";
    write(last, `and ${is.more} more`);
  }
}

// New queues get a row from the server's page, and dropped queues lose their rows. All other rows stay the same nodes.
async function rows(names) {
  const body = document.getElementById("queues");
  const shown = new Map(body ? [...body.rows].map((row) => [row.dataset.queue, row]) : []);
  if (shown.size === names.length && names.every((name) => shown.has(name))) return;
  const answer = await fetch(base + "/");
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const renewed = fresh.getElementById("queues");
  if (!body || !renewed) {
    if (body || renewed) location.reload(); // from no queue to some, or back
    return;
  }
  const rows = [...renewed.rows].map((row) => shown.get(row.dataset.queue) || row);
  for (const row of [...body.rows]) if (!rows.includes(row)) row.remove();
  rows.forEach((row, at) => {
    if (body.rows[at] !== row) body.insertBefore(row, body.rows[at] || null);
  });
}

// Parts that are not in the events, such as charts and workers, are fetched again. They are replaced if they have changed, but not while they have the focus.
// If the answer is the login page, the stream of numbers ends as well, and the page shows this.
const parts = [...document.querySelectorAll("[data-renew]")];
async function renew() {
  if (document.hidden) return;
  const answer = await fetch(location.href).catch(() => null);
  if (!answer || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of parts) {
    const now = fresh.getElementById(part.id);
    const isBusy = part.contains(document.activeElement) || getSelection().containsNode(part, true) && !getSelection().isCollapsed;
    if (now && !isBusy && now.innerHTML !== part.innerHTML) part.replaceChildren(...now.childNodes);
  }
}
if (parts.length) setInterval(renew, 10000);

function receive(event) {
  const told = JSON.parse(event.data);
  tell(told.problem ? "The numbers are not being updated: " + told.problem : "");
  for (const place of document.querySelectorAll("[data-queue]")) {
    const of = told.queues[place.dataset.queue];
    if (of) numbers(place, of);
  }
  if (verdict) {
    judge(told.verdict);
    if (told.names) rows(told.names);
  }
}

function doubt(why) {
  tell(why + ", so the numbers are not being updated.");
  if (!verdict) return;
  verdict.className = "verdict unknown";
  write(document.getElementById("verdict"), "It is not known whether all is well");
}

// A browser gives up a stream for good if the console or a proxy answers anything else, such as an error during a restart. So the page asks for
// the reason and tries again after a pause.
const PAUSE = 5000;
function follow() {
  const events = new EventSource(base + "/live");
  events.onmessage = receive;
  events.onerror = async () => {
    const silent = "The console does not answer";
    if (events.readyState !== EventSource.CLOSED) return doubt(silent); // the browser tries again by itself
    const stop = new AbortController();
    setTimeout(() => stop.abort(), PAUSE);
    const answer = await fetch(base + "/live", { signal: stop.signal }).catch(() => null);
    stop.abort();
    doubt(answer && answer.status === 401 ? "The session has ended: reload the page to log in" : silent);
    setTimeout(follow, PAUSE);
  };
}
follow();
