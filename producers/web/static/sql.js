// The editor of /ui/sql: names of views and columns are completed while one types, and Ctrl+Enter runs the query.
"use strict";

(() => {
  const editor = document.getElementById("sql-query");
  const list = document.getElementById("sql-names");
  if (!editor || !list) return;
  const MOST = 10;
  let names; // a promise of the columns by view, asked for once
  let fitting = []; // what the list shows
  let typed = ""; // the beginning of a name before the caret
  let chosen = 0;
  let moved = false; // an arrow chose: then Enter takes the name as well

  const columnsByView = () =>
    (names ??= fetch(editor.dataset.names)
      .then((answer) => (answer.ok ? answer.json() : {}))
      .catch(() => ({})));

  // The view that stands for a name before a dot: itself, or the one that has it as an alias.
  function viewOf(name, views) {
    if (views[name]) return name;
    const alias = new RegExp(`\\b(\\w+)\\s+(?:AS\\s+)?${name}\\b`, "gi");
    return [...editor.value.matchAll(alias)].map((found) => found[1].toLowerCase()).find((view) => views[view]);
  }

  function candidates(qualifier, views) {
    if (qualifier) return views[viewOf(qualifier, views)] ?? [];
    const said = new Set(editor.value.toLowerCase().match(/\w+/g));
    const inUse = Object.keys(views).filter((view) => said.has(view));
    const columns = (of) => of.flatMap((view) => views[view]);
    return [...columns(inUse), ...Object.keys(views), ...columns(Object.keys(views))];
  }

  async function complete() {
    const before = editor.value.slice(0, editor.selectionStart);
    const [, qualifier, begun] = before.match(/(?:([A-Za-z_]\w*)\.)?((?:[A-Za-z_]\w*)?)$/);
    const inText = before.split("'").length % 2 === 0;
    if (inText || (!qualifier && !begun) || editor.selectionStart !== editor.selectionEnd) return close();
    const views = await columnsByView();
    if (before !== editor.value.slice(0, editor.selectionStart)) return undefined; // typed on meanwhile
    const start = begun.toLowerCase();
    const found = candidates(qualifier?.toLowerCase(), views).filter((name) => name.startsWith(start));
    typed = begun;
    fitting = [...new Set(found)].filter((name) => name !== start).slice(0, MOST);
    chosen = 0;
    moved = false;
    return show();
  }

  function show() {
    list.replaceChildren(
      ...fitting.map((name, place) => {
        const option = document.createElement("li");
        option.id = `sql-name-${place}`;
        option.setAttribute("role", "option");
        option.setAttribute("aria-selected", place === chosen);
        option.textContent = name;
        return option;
      }),
    );
    list.hidden = !fitting.length;
    if (list.hidden) editor.removeAttribute("aria-activedescendant");
    else editor.setAttribute("aria-activedescendant", `sql-name-${chosen}`);
  }

  function close() {
    fitting = [];
    show();
  }

  function take(place) {
    const rest = fitting[place];
    editor.focus();
    editor.setSelectionRange(editor.selectionStart - typed.length, editor.selectionStart);
    // The one way that leaves the editor's own undo whole.
    if (!document.execCommand("insertText", false, rest)) {
      editor.setRangeText(rest, editor.selectionStart, editor.selectionEnd, "end");
    }
    close();
  }

  editor.addEventListener("input", complete);
  editor.addEventListener("blur", close);
  editor.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      editor.form.requestSubmit(editor.form.querySelector("[data-runs]"));
      return;
    }
    if (list.hidden || event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = (chosen + step + fitting.length) % fitting.length;
      moved = true;
      show();
    } else if ((event.key === "Tab" && !event.shiftKey) || (event.key === "Enter" && moved)) take(chosen);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => {
    event.preventDefault(); // the editor keeps the focus
    const place = [...list.children].indexOf(event.target);
    if (place >= 0) take(place);
  });
})();
