// SPDX-License-Identifier: Apache-2.0
// Pods by QoS class, ordered by memory above the request.

const kTiers = ["BestEffort", "Burstable", "Guaranteed", ""];
const kPodsShown = 25;

function barOf() {
  const within = make("i", {class: "within"}), above = make("i", {class: "above"});
  return {element: make("div", {class: "bar", "aria-hidden": "true"}, within, above), within, above};
}

class Tier {
  constructor(qos) {
    this.qos = qos;
    this.sums = make("small");
    this.element = make("tbody", {}, make("tr", {class: "tier"},
      make("th", {scope: "rowgroup", colspan: "8"}, qos || "QoS class unknown", " ", this.sums)));
    this.rows = new Keyed(this.element, () => this.makeRow(), (row, pod) => this.showPod(row, pod));
  }

  makeRow() {
    const row = rowOf(["pod", "bar", "over", "held", "request", "limit", "priority", "state"],
      {over: "num", held: "num", request: "num", limit: "num", priority: "num"});
    row.bar = barOf();
    row.cells.bar.append(row.bar.element);
    return row;
  }

  showPod({cells, bar}, pod) {
    setText(cells.pod, podName(pod));
    setText(cells.over, bytes(pod.over_request));
    setText(cells.held, bytes(pod.working_set));
    setText(cells.request, bytes(pod.request));
    setText(cells.limit, isNumber(pod.limit) ? bytes(pod.limit) : "none");
    setText(cells.priority, number(pod.priority));
    setText(cells.state, String(pod.state).replace("_", " "));
    setClass(cells.state, /running|critical|empty|unknown/.test(pod.state) ? "" : "bad");
    const held = pod.working_set || 0;
    setWidth(bar.within, Math.min(held, pod.request) / this.scale);
    setWidth(bar.above, Math.max(0, held - pod.request) / this.scale);
  }

  show(pods, all, scale) {
    this.scale = scale;
    setText(this.sums, `${many(all.pods, "pod")}, ${bytes(all.over)} above requests${
      pods.length < all.pods ? `; the first ${pods.length}` : ""}`);
    this.rows.show(pods, (pod) => `${pod.uid} ${pod.cgroup}`);
    setHidden(this.element, all.pods === 0);
  }
}

class Pods {
  constructor() {
    this.tiers = kTiers.map((qos) => new Tier(qos));
    byId("pods").append(...this.tiers.map((tier) => tier.element));
    this.all = byId("all-pods");
    this.all.addEventListener("click", () => {
      setAttribute(this.all, "aria-pressed", this.whole() ? "false" : "true");
      if (this.status) this.show(this.status);
    });
  }

  whole() { return this.all.getAttribute("aria-pressed") === "true"; }
  // The query: no more pods than are shown.
  wanted() { return this.whole() ? "" : `?pods=${kPodsShown}`; }

  show(status) {
    this.status = status;
    const pods = list(status.pods), classes = list(status.qos_classes);
    const scale = pods.reduce((most, pod) => Math.max(most, pod.working_set || 0), 1);
    const known = (pod) => isNumber(pod.over_request) ? pod.over_request : -Infinity;
    for (const tier of this.tiers) {
      const inTier = (each) => kTiers.includes(each.qos) ? each.qos === tier.qos : tier.qos === "";
      const mine = pods.filter(inTier);
      mine.sort((a, b) => known(b) - known(a) || podName(a).localeCompare(podName(b)));
      const all = classes.filter(inTier).reduce((sum, each) => ({pods: sum.pods + each.pods, over: sum.over + each.over_request}), {pods: 0, over: 0});
      tier.show(this.whole() ? mine : mine.slice(0, kPodsShown), all, scale);
    }
    const count = podCount(status);
    setHidden(this.all, count <= kPodsShown);
    setText(this.all, `Show all ${many(count, "pod")}`);
  }
}
