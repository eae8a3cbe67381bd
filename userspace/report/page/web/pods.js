// SPDX-License-Identifier: Apache-2.0
// Pods in groups, searched, sorted by any column. In the order that evictions have, the daemon sends only the first of
// each QoS class; for anything else it sends all pods.

const kTiers = ["BestEffort", "Burstable", "Guaranteed", ""];
const kPodsShown = 25;      // of a group, unless all are asked for
const kNumeric = new Set(kPodColumns.filter((each) => each.value).map((each) => each.name));

const kGroups = {
  qos: {of: (pod) => kTiers.includes(pod.qos) ? pod.qos : "", title: (name) => name || "QoS class unknown",
    order: (a, b) => kTiers.indexOf(a) - kTiers.indexOf(b)},
  namespace: {of: (pod) => pod.namespace || "default", title: (name) => `Namespace ${name}`, order: (a, b) => a.localeCompare(b)},
  none: {of: () => "all", title: () => "All pods", order: () => 0},
};

function barOf() {
  const within = make("i", {class: "within"}), above = make("i", {class: "above"});
  return {element: make("div", {class: "bar", "aria-hidden": "true"}, within, above), within, above};
}

// One group: a head and a row for each pod.
class PodGroup {
  constructor(pods) {
    this.pods = pods;
    this.title = make("span");
    this.sums = make("small");
    this.element = make("tbody", {}, make("tr", {class: "tier"},
      make("th", {scope: "rowgroup", colspan: String(kPodColumns.length)}, this.title, " ", this.sums)));
    this.rows = new Keyed(this.element, (pod) => this.makeRow(pod), (row, pod) => this.showPod(row, pod));
  }

  makeRow() {
    const row = rowOf(kPodColumns.map((each) => each.name), Object.fromEntries([...kNumeric].map((name) => [name, "num"])));
    row.bar = barOf();
    row.cells.bar.append(row.bar.element);
    row.open = make("button", {type: "button", class: "link-button"});
    row.open.addEventListener("click", () => this.pods.open(row.pod));
    row.cells.pod.append(row.open);
    return row;
  }

  showPod(row, pod) {
    row.pod = pod;
    const {cells, bar} = row, rates = this.pods.history.rates(pod);
    for (const column of kPodColumns)
      if (column.text) setText(column.name === "pod" ? row.open : cells[column.name], column.text(pod, rates));
    setClass(cells.state, /running|critical|empty|unknown/.test(pod.state) ? "" : "bad");
    const held = pod.working_set || 0;
    setWidth(bar.within, Math.min(held, pod.request) / this.pods.scale);
    setWidth(bar.above, Math.max(0, held - pod.request) / this.pods.scale);
  }

  show(title, pods, all) {
    setText(this.title, title);
    setText(this.sums, `${many(all.pods, "pod")}, ${bytes(all.over)} above requests${
      pods.length < all.pods ? `; the first ${pods.length}` : ""}`);
    this.rows.show(pods, podKey);
  }
}

class Pods {
  constructor(detail) {
    Object.assign(this, {detail, history: new PodHistory(), sort: "over", descending: true, scale: 1});
    this.search = byId("pods-search");
    this.group = byId("pods-group");
    this.all = byId("all-pods");
    this.groups = new Keyed(byId("pods"), () => new PodGroup(this), (group, {title, pods, all}) => group.show(title, pods, all));
    this.makeHead();
    this.search.addEventListener("input", () => this.changed());
    this.group.addEventListener("change", () => this.changed());
    this.all.addEventListener("click", () => {
      setAttribute(this.all, "aria-pressed", this.whole() ? "false" : "true");
      this.changed();
    });
  }

  makeHead() {
    this.heads = kPodColumns.map((column) => {
      const head = make("th", {scope: "col", ...(kNumeric.has(column.name) && {class: "num"})});
      if (column.name === "bar") {
        head.append(column.title);
        return head;
      }
      const button = make("button", {type: "button", class: "link-button"}, column.title);
      button.addEventListener("click", () => {
        this.descending = this.sort === column.name ? !this.descending : true;
        this.sort = column.name;
        this.changed();
      });
      head.append(button);
      return head;
    });
    byId("pods-head").append(...this.heads);
    this.showSort();
  }

  showSort() {
    kPodColumns.forEach((column, i) => {
      const sorted = column.name === this.sort;
      // Texts are sorted from A to Z first, numbers from the highest.
      const ascending = kNumeric.has(column.name) ? !this.descending : this.descending;
      setAttribute(this.heads[i], "aria-sort", sorted ? (ascending ? "ascending" : "descending") : "none");
    });
  }

  changed() {
    this.showSort();
    if (this.status) this.show(this.status);
    if (this.onChange && !this.complete) this.onChange();
  }

  whole() { return this.all.getAttribute("aria-pressed") === "true"; }
  words() { return this.search.value.toLowerCase().split(/\s+/).filter(Boolean); }
  // The order of the daemon's own list.
  usual() { return this.sort === "over" && this.descending && this.group.value === "qos" && !this.words().length; }
  // The query: no more pods than are shown.
  wanted() { return this.whole() || !this.usual() ? "" : `?pods=${kPodsShown}`; }

  matching(pods) {
    const words = this.words();
    return pods.filter((pod) => {
      const text = `${podName(pod)} ${pod.qos} ${state(pod)}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  sorted(pods) {
    const column = kPodColumns.find((each) => each.name === this.sort), up = this.descending ? 1 : -1;
    const keys = new Map(pods.map((pod) => [pod, column.value ? column.value(pod, this.history.rates(pod)) : column.text(pod, {})]));
    return pods.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      const order = column.value
        ? (isNumber(x) && isNumber(y) ? up * (y - x) : Number(isNumber(y)) - Number(isNumber(x))) : up * x.localeCompare(y);
      return order || podName(a).localeCompare(podName(b));
    });
  }

  show(status) {
    this.status = status;
    this.history.add(status);
    const pods = list(status.pods), by = kGroups[this.group.value] || kGroups.qos;
    const count = podCount(status);
    this.complete = pods.length >= count;
    this.scale = pods.reduce((most, pod) => Math.max(most, pod.working_set || 0), 1);
    const groups = new Map();
    for (const pod of this.matching([...pods])) {
      const name = by.of(pod);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(pod);
    }
    const shown = [...groups].sort(([a], [b]) => by.order(a, b)).map(([name, mine]) => ({name, title: by.title(name),
      pods: this.sorted(mine).slice(0, this.whole() ? Infinity : kPodsShown), all: this.sumOf(status, name, mine)}));
    this.groups.show(shown, (group) => group.name);
    setText(byId("pods-found"), this.words().length ? `${many(shown.reduce((sum, each) => sum + each.all.pods, 0), "pod")} found` : "");
    setHidden(this.all, count <= kPodsShown);
    setText(this.all, `Show all ${many(count, "pod")}`);
    this.detail.show(status, this.history);
  }

  // What the daemon counted, where it sent only the first pods of a class.
  sumOf(status, name, mine) {
    if (this.usual()) {
      const counted = list(status.qos_classes).find((each) => kGroups.qos.of(each) === name);
      if (counted) return {pods: counted.pods, over: counted.over_request};
    }
    return {pods: mine.length, over: mine.reduce((sum, pod) => sum + Math.max(0, pod.over_request || 0), 0)};
  }

  open(pod) { this.detail.open(pod, this.status, this.history); }
}
