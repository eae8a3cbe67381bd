// SPDX-License-Identifier: Apache-2.0
// Axis: round values for the lines of a chart, as HTML beside the stretched SVG.

const kMostTicks = 4;

// Multiples of a round step, up to `highest`: powers of two for bytes, else 1, 2 or 5 times a power of ten.
function ticksOf(highest, binary) {
  if (!(highest > 0)) return [];
  let step = binary ? 1 : 10 ** Math.floor(Math.log10(highest / kMostTicks));
  const grow = binary ? () => step * 2 : () => step * (String(step).replace(/[0.]/g, "").startsWith("2") ? 2.5 : 2);
  while (highest / step > kMostTicks) step = grow();
  return Array.from({length: Math.floor(highest / step)}, (_, i) => (i + 1) * step);
}

const isBinary = (signal) => signal !== "memory.pressure" && !/inodesFree|^pid\./.test(signal);

// Labels that are created once and moved: place() gets their texts and places in percent.
class TickLabels {
  constructor(parent, name, side) {
    Object.assign(this, {parent, name, side, labels: []});
  }

  place(ticks) {
    while (this.labels.length < ticks.length) {
      const label = make("span", {class: this.name, "aria-hidden": "true"});
      this.labels.push(label);
      this.parent.append(label);
    }
    while (this.labels.length > ticks.length) this.labels.pop().remove();
    ticks.forEach(({text, at}, i) => {
      setText(this.labels[i], text);
      const place = `${at.toFixed(2)}%`;
      if (this.labels[i].style[this.side] !== place) this.labels[i].style[this.side] = place;
    });
  }
}

// Lines of an SVG group, created once and moved.
function setLines(group, lines, attributes) {
  while (group.childElementCount < lines.length) group.append(drawn("line", attributes));
  while (group.childElementCount > lines.length) group.lastElementChild.remove();
  lines.forEach((line, i) => {
    for (const [name, value] of Object.entries(line)) setAttribute(group.children[i], name, value);
  });
}
