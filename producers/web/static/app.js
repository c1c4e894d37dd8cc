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
    note.hidden = false;
    note.dataset.count = changes.count;
    lead(note);
  }
});

// Whether the reader wrote something that is not sent: loading the page anew would lose it.
function unsent() {
  return [...document.querySelectorAll("main input, main textarea, main select")].some((field) => {
    if (field.type === "hidden" || field.type === "range") return false;
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (!field.options) return field.value !== field.defaultValue;
    const stated = [...field.options].some((option) => option.defaultSelected);
    return stated ? [...field.options].some((option) => option.selected !== option.defaultSelected) : field.selectedIndex > 0;
  });
}

// The note leads to the page as it is now: beside this one where something is written here.
function lead(note) {
  const link = note.querySelector("[data-said]");
  const beside = unsent();
  link.target = beside ? "_blank" : "";
  link.textContent = (beside ? link.dataset.beside : link.dataset.said).replace("{n}", note.dataset.count);
}
document.addEventListener("input", () => {
  const note = document.getElementById("live-note");
  if (note && !note.hidden) lead(note);
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

// A form loads the page anew, and the keyboard would begin at its top: it goes on at what is said of the form, or at the
// button of the header that was pressed.
let byKeyboard = false;
document.addEventListener("keydown", () => { byKeyboard = true; }, true);
document.addEventListener("pointerdown", () => { byKeyboard = false; }, true);
document.addEventListener("submit", (event) => {
  const pressed = event.submitter;
  if (byKeyboard && pressed && pressed.name && pressed.closest("header")) sessionStorage.setItem("pressed", pressed.name);
});
document.addEventListener("DOMContentLoaded", () => {
  const pressed = sessionStorage.getItem("pressed");
  sessionStorage.removeItem("pressed");
  if (document.querySelector("[autofocus]")) return;
  const told = document.querySelector("#notices [data-told]");
  const on = told ? told.parentElement : pressed && document.querySelector(`header button[name="${pressed}"]`);
  if (on) on.focus();
});

// How many items of a list are chosen.
function count() {
  const told = document.querySelector("output[data-chosen]");
  if (!told) return;
  const chosen = document.querySelectorAll("input[name=id][form=choice]:checked").length;
  told.hidden = chosen === 0;
  told.textContent = told.dataset.chosen.replace("{n}", chosen);
}
document.addEventListener("change", count);
document.addEventListener("DOMContentLoaded", count);
