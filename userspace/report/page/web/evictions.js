// SPDX-License-Identifier: Apache-2.0
// Evictions: the timeline, latest first. An explanation is made when it is opened.

const evictionKey = (record) => `${record.time} ${record.boot_ns} ${table(record.pod).uid}`;

function causeText(record) {
  if (record.taint) return `taint ${record.taint}`;
  const reading = isNumber(record.available)
    ? `: ${amount(record.signal, record.available)} below ${amount(record.signal, record.threshold)}` : "";
  return `${record.signal} ${record.kind}${reading}`;
}

// The record's time is UTC; the page shows local time.
function whenText(record) {
  const when = new Date(record.time);
  return Number.isNaN(when.getTime()) ? String(record.time) : when.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"});
}

function evictionItem(record) {
  const outcome = String(record.outcome);
  const badge = make("span", {class: `badge ${Object.hasOwn(kOutcomeText, outcome) ? outcome : ""}`}, outcome.replace("_", " "));
  const summary = make("summary", {}, make("time", {datetime: String(record.time)}, whenText(record)), " ",
    make("strong", {}, podName(record.pod)), " ", badge, ` ${causeText(record)}`);
  const details = make("details", {}, summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(proofOf(record));
  });
  return {element: make("li", {}, details)};
}

class Evictions {
  constructor() {
    this.items = new Keyed(byId("evictions"), evictionItem, () => {});
    this.timeline = new Timeline((record) => this.open(record));
    this.at = [];     // seconds since boot
    this.seen = null; // keys; null before the first list
    this.last = "";   // the latest eviction: its time and pod
  }

  show(records) {
    const latest = records.filter((record) => record && typeof record === "object").reverse();
    this.items.show(latest, evictionKey);
    this.latest = latest;
    this.timeline.show(latest);
    this.at = latest.map((record) => secondsOf(record.boot_ns)).filter(isNumber);
    setText(byId("evictions-note"), latest.length
      ? `${many(latest.length, "record")}, latest first. Open one to see its explanation: readings, ranking and reasons.`
      : "No evictions recorded.");
    this.last = latest.length ? `${whenText(latest[0])}, ${podName(latest[0].pod)}` : "";
    this.announce(latest);
  }

  open(record) {
    const row = this.items.rows.get(evictionKey(record));
    if (!row) return;
    const details = row.element.firstElementChild;
    details.open = true;
    details.firstElementChild.focus();
  }

  // Evictions that happen while the page is open are announced once.
  announce(latest) {
    const keys = new Set(latest.map(evictionKey));
    const fresh = this.seen ? latest.filter((record) => !this.seen.has(evictionKey(record))) : [];
    this.seen = keys;
    if (fresh.length === 1) {
      const outcome = Object.hasOwn(kOutcomeText, fresh[0].outcome) ? kOutcomeText[fresh[0].outcome] : String(fresh[0].outcome);
      announce(`${podName(fresh[0].pod)} ${outcome}: ${causeText(fresh[0])}`);
    } else if (fresh.length > 1) {
      announce(`${fresh.length} new evictions`);
    }
  }
}

// For screen readers: evictions and a lost connection, nothing else.
function announce(text) {
  setText(byId("announce"), text);
}
