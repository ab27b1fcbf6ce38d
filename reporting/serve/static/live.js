// What changes while a page is open: after an event it is asked for again, and only what differs is touched.
"use strict";

const SECOND = 1000;
const AGO = [[60, "s"], [60, "min"], [48, "h"], [Infinity, "days"]];
const live = document.getElementById("live");
let version = "";
let source = null;

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
  return node.dataset?.key ?? node.getAttribute?.("aria-labelledby");
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

/** Ask for the page, and put what has changed in its place. */
async function look() {
  const answer = await fetch(location.href, { headers: { "If-None-Match": version } });
  if (answer.ok) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of ["nav", "main"]) {
      become(document.querySelector(part), document.importNode(page.querySelector(part), true));
    }
    version = answer.headers.get("ETag");
  }
  tell();
}

/** Listen for changes of the page. */
function open() {
  if (source) return;
  source = new EventSource(`/events${location.pathname}${location.search}`);
  source.addEventListener("open", () => (live.textContent = "live"));
  source.addEventListener("error", () => (live.textContent = "not connected: what is here may be old"));
  source.addEventListener("message", () => look().catch(() => (live.textContent = "what is here may be old")));
}

function close() {
  source?.close();
  source = null;
}

// a page that nobody sees asks for nothing: browsers allow few connections
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
tell();
setInterval(tell, 10 * SECOND);
if (!document.hidden) open();
