// SPDX-License-Identifier: Apache-2.0
// Timeline: the latest evictions on a line of time; each mark opens its explanation.

class Timeline {
  constructor(open) {
    this.marks = new Keyed(byId("timeline-marks"), (record) => {
      const button = make("button", {type: "button", class: `tick ${Object.hasOwn(kOutcomeText, record.outcome) ? record.outcome : ""}`,
        title: `${whenText(record)}, ${podName(record.pod)}`}, make("span", {class: "unseen"}, `${podName(record.pod)}, ${whenText(record)}`));
      button.addEventListener("click", () => open(record));
      return {element: make("li", {}, button)};
    }, (mark, record) => {
      const place = `${(100 * this.placeOf(record)).toFixed(2)}%`;
      if (mark.element.style.left !== place) mark.element.style.left = place;
    });
  }

  placeOf(record) { return (Date.parse(record.time) - this.from) / (this.to - this.from || 1); }

  show(latest) {
    const dated = latest.filter((record) => !Number.isNaN(Date.parse(record.time)));
    setHidden(byId("timeline"), dated.length < 2);
    if (dated.length < 2) return;
    const times = dated.map((record) => Date.parse(record.time));
    this.from = Math.min(...times);
    this.to = Math.max(...times);
    setText(byId("timeline-from"), whenText(dated[dated.length - 1]));
    setText(byId("timeline-to"), whenText(dated[0]));
    this.marks.show([...dated].reverse(), evictionKey);
  }
}
