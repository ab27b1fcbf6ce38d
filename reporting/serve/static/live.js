// What changes while a page is open: its parts, which the server pushes, and how long ago a moment is.
"use strict";

const SECOND = 1000;
const AGO = [[60, "s"], [60, "min"], [48, "h"], [Infinity, "days"]];
const places = () => document.querySelectorAll("[data-version]");
const live = document.getElementById("live");
let source = null;

/** A part of the page as it has come, in place of what was there: only what differs is touched. */
function put(id, markup) {
  const old = document.getElementById(id);
  const fresh = new DOMParser().parseFromString(markup, "text/html").body.firstElementChild;
  if (old && fresh) become(old, document.importNode(fresh, true));
}

/** Make a node like another one of the same kind: what is open stays open, what is scrolled stays scrolled. */
function become(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const kept = new Map([...old.children].filter(key).map((each) => [key(each), each]));
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    let found = key(wanted) ? kept.get(key(wanted)) : at;
    if (key(wanted) && !found) found = null;
    if (found && (!alike(found, wanted) || (!key(wanted) && key(found)))) found = null;
    if (!found) {
      old.insertBefore(wanted, at);
    } else {
      if (found !== at) old.insertBefore(found, at);
      at = found.nextSibling;
      become(found, wanted);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

/** What a node is known by among its siblings, wherever it stands. */
function key(node) {
  return node.dataset?.key;
}

function alike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName;
}

/** How long ago each moment was, in words; the moment itself is there on a longer look. */
function tell() {
  for (const each of document.querySelectorAll("time")) {
    const then = new Date(each.dateTime);
    let value = Math.max(0, (Date.now() - then) / SECOND);
    for (const [limit, unit] of AGO) {
      if (value < limit) {
        each.textContent = `${Math.round(value)} ${unit} ago`;
        break;
      }
      value /= unit === "h" ? 24 : 60;
    }
    each.title = then.toLocaleString();
  }
}

function state(text) {
  if (live) live.textContent = text;
}

/** Ask for what changes, beginning with what differs from what is here. */
function open() {
  if (source) return;
  const have = [...places()].map((each) => `${each.id}:${each.dataset.version}`).join(",");
  const address = new URL(document.body.dataset.events, location.href);
  address.searchParams.set("have", have);
  source = new EventSource(address);
  source.addEventListener("open", () => state("live"));
  source.addEventListener("error", () => state("not connected: what is here may be old"));
  source.addEventListener("part", (event) => {
    const { id, markup } = JSON.parse(event.data);
    put(id, markup);
    tell();
  });
}

function close() {
  source?.close();
  source = null;
}

if (document.body.dataset.events) {
  // a page that nobody sees asks for nothing: browsers allow few connections
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  tell();
  setInterval(tell, 10 * SECOND);
  if (!document.hidden) open();
}
