// SPDX-License-Identifier: Apache-2.0
// Helpers that change the document only where needed. Data of the node is text, never markup.

const byId = (id) => document.getElementById(id);

function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

function setWidth(element, share) {
  const width = `${(Math.min(1, Math.max(0, share)) * 100).toFixed(1)}%`;
  if (element.style.width !== width) element.style.width = width;
}

// make("td", {class: "num"}, "text", child, …)
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function drawn(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Rows identified by key, below an optional head: created once, updated in place, moved only if the
// order changed.
class Keyed {
  constructor(parent, makeRow, updateRow) {
    Object.assign(this, {parent, makeRow, updateRow, rows: new Map(), head: parent.lastElementChild});
  }

  show(items, keyOf) {
    const byKey = new Map(items.map((item) => [keyOf(item), item]));
    for (const [key, row] of this.rows)
      if (!byKey.has(key)) {
        row.element.remove();
        this.rows.delete(key);
      }
    let next = this.head ? this.head.nextElementSibling : this.parent.firstElementChild;
    for (const [key, item] of byKey) {
      let row = this.rows.get(key);
      if (!row) this.rows.set(key, row = this.makeRow(item));
      this.updateRow(row, item);
      if (row.element === next) next = next.nextElementSibling;
      else this.parent.insertBefore(row.element, next);
    }
  }
}

// A table's row with cells by name: the first is its header.
function rowOf(names, classes = {}) {
  const cells = {};
  const element = make("tr");
  names.forEach((name, i) => {
    cells[name] = make(i === 0 ? "th" : "td", {...(i === 0 && {scope: "row"}), ...(classes[name] && {class: classes[name]})});
    element.append(cells[name]);
  });
  return {element, cells};
}
