// Says when the node does not answer any more, or knows the reader no more, and asks until it does. What is shown
// and written stays.
"use strict";
(() => {
  const note = document.getElementById("away-note");
  if (!note) return; // nobody is signed in
  const LOOKS_EVERY = 20_000;
  const ASKS_AGAIN = 2_000;
  const ANSWERS_WITHIN = 10_000;
  let asking = false;
  let timer = 0;

  // The status of the answer; 0 where there is none.
  async function asked() {
    try {
      const about = { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(ANSWERS_WITHIN) };
      return (await fetch(note.dataset.ask, about)).status;
    } catch {
      return 0;
    }
  }

  function say(state) {
    if (note.dataset.state !== state) {
      note.dataset.state = state;
      const at = new Date().toLocaleTimeString(document.documentElement.lang, { timeStyle: "short" });
      for (const said of note.querySelectorAll("[data-of]")) {
        said.hidden = said.dataset.of !== state;
        said.textContent = said.hidden ? "" : said.dataset.said.replace("{time}", at);
      }
    }
    note.hidden = state === "";
  }

  async function look() {
    if (asking) return;
    asking = true;
    clearTimeout(timer);
    const status = await asked();
    asking = false;
    say(status === 0 ? "away" : status === 401 ? "out" : "");
    timer = setTimeout(() => document.hidden || look(), status === 0 || status === 401 ? ASKS_AGAIN : LOOKS_EVERY);
  }

  document.addEventListener("visibilitychange", () => document.hidden || look());
  for (const told of ["htmx:sse:error", "htmx:error"]) document.addEventListener(told, look);
  window.addEventListener("offline", look);
  window.addEventListener("online", look);
  timer = setTimeout(look, LOOKS_EVERY);

  // What is sent now would be lost with the page.
  document.addEventListener("submit", (event) => {
    if (note.dataset.state !== "away") return;
    event.preventDefault();
    note.scrollIntoView({ block: "nearest" });
    look();
  });
})();
