// What a page does beyond links and forms; all of it can be done without.
"use strict";

// Marks what changed while one looks: nothing moves, the reader decides when to load anew.
document.addEventListener("changed", (event) => {
  const changes = JSON.parse(event.detail.data);
  for (const id of changes.ids) {
    for (const shown of document.querySelectorAll("[data-item]")) {
      if (shown.dataset.item === id) shown.classList.add("changed");
    }
  }
  const note = document.getElementById("live-note");
  if (note) {
    const link = note.querySelector("[data-said]");
    note.hidden = false;
    link.textContent = link.dataset.said.replace("{n}", changes.count);
  }
});

// Menus close with Escape, and by a click elsewhere; / goes to the search.
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    for (const open of document.querySelectorAll("details.who[open]")) open.open = false;
  }
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const search = document.querySelector("input[type=search]");
  if (event.key === "/" && !typing && search && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    search.focus();
  }
});
document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll("details.who[open]")) {
    if (!open.contains(event.target)) open.open = false;
  }
});
