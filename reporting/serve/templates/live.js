// Renews an open page: asks for it again every two seconds, and replaces the sections that differ.
"use strict";

const LOOK_MS = 2000;
const AGO = [[60, "s"], [60, "min"], [48, "h"], [Infinity, "days"]];
const live = document.getElementById("live");
const sections = (page) => [...page.querySelectorAll("main > section")];
const anchor = (section) => section.getAttribute("aria-labelledby");
let known = new Map(sections(document).map((each) => [anchor(each), each.outerHTML]));
let version = "";

/** Put the sections of a page that differ in their places. What is open stays open. */
function renew(page) {
  const shown = new Map(sections(document).map((each) => [anchor(each), each]));
  const texts = new Map();
  let before = null;
  for (const fresh of sections(page)) {
    texts.set(anchor(fresh), fresh.outerHTML);
    const old = shown.get(anchor(fresh));
    shown.delete(anchor(fresh));
    if (old && known.get(anchor(fresh)) === fresh.outerHTML) {
      before = old;
      continue;
    }
    if (old) {
      const open = new Set([...old.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
      for (const each of fresh.querySelectorAll("details > summary")) each.parentNode.open = open.has(each.textContent);
      old.replaceWith(fresh);
    } else if (before) {
      before.after(fresh);
    } else {
      document.querySelector("main").prepend(fresh);
    }
    before = fresh;
  }
  for (const gone of shown.values()) gone.remove();
  document.querySelector("nav").replaceChildren(...page.querySelector("nav").childNodes);
  known = texts;
}

/** Say how long ago each moment was; the moment itself is there on a longer look. */
function tell() {
  for (const each of document.querySelectorAll("main time")) {
    const then = new Date(each.dateTime);
    let value = Math.max(0, (Date.now() - then) / 1000);
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

async function look() {
  const answer = await fetch(location.href, { headers: { "If-None-Match": version } });
  if (answer.status !== 304) {
    renew(new DOMParser().parseFromString(await answer.text(), "text/html"));
    version = answer.headers.get("ETag") ?? "";
  }
  live.textContent = "live";
}

async function follow() {
  // a page that nobody sees asks for nothing
  if (!document.hidden) await look().catch(() => (live.textContent = "not connected: what is here may be old"));
  tell();
  setTimeout(follow, LOOK_MS);
}

follow();
