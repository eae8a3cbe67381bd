// SPDX-License-Identifier: Apache-2.0
// The CPU map: the owner of each CPU, by socket, NUMA node and core, if CPU pinning is on.

// "0-3,8" as [0, 1, 2, 3, 8].
function cpuList(text) {
  return String(text || "").split(",").filter(Boolean).flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({length: last - first + 1}, (_, i) => first + i);
  });
}

// [[key, items of that key], …], ordered by key.
function grouped(items, key) {
  const groups = new Map();
  for (const item of items) groups.set(item[key], [...(groups.get(item[key]) || []), item]);
  return [...groups].sort(([a], [b]) => a - b);
}

const kColours = 6;  // .owner0 to .owner5; neighbours differ, and each has a label too

class Cpus {
  constructor() {
    this.drawn = "";
    this.rows = new Keyed(byId("cpus-rows"), () => rowOf(["container", "cpus", "requested", "state"], {requested: "num"}),
      ({cells}, owner) => this.showOwner(cells, owner));
  }

  show(answer) {
    const places = list(table(answer).cpus);
    setHidden(byId("cpus-section"), places.length === 0);
    if (!places.length) return;
    this.owners = list(answer.containers).map((owner, i) => ({...owner, name: `${owner.namespace}/${owner.pod}/${owner.container}`, colour: i % kColours}));
    setText(byId("cpus-note"), this.note(answer));
    // The map is redrawn only if it changed.
    const is = JSON.stringify([places, answer.reserved, answer.shared, answer.offline, answer.isolated, this.owners]);
    if (is !== this.drawn) this.draw(places, answer);
    this.drawn = is;
    setHidden(byId("cpus-table"), this.owners.length === 0);
    this.rows.show(this.owners, (owner) => `${owner.uid}/${owner.container}`);
  }

  note(answer) {
    const pool = table(answer.shared_pool);
    const milli = (count) => (count / 1000).toFixed(count % 1000 ? 2 : 0);
    const shared = isNumber(pool.size_millicores)
      ? ` The shared pool has ${milli(pool.size_millicores)} CPUs without the reserved ones; ${milli(pool.requested_millicores)} are requested.` : "";
    return `Mode ${answer.mode}, policy ${answer.policy}.${shared}${answer.error ? ` ${answer.error}` : ""}`;
  }

  draw(places, answer) {
    const kinds = new Map();
    const mark = (cpus, kind) => cpuList(cpus).forEach((cpu) => kinds.set(cpu, kind));
    mark(answer.shared, {name: "shared", of: "shared"});
    mark(answer.reserved, {name: "reserved", of: "reserved"});
    mark(answer.isolated, {name: "isolated from the scheduler", of: "isolated"});
    for (const owner of this.owners) mark(owner.cpus, {name: owner.name, of: `owner${owner.colour}`});
    mark(answer.offline, {name: "offline", of: "offline"});
    byId("cpus-map").replaceChildren(...grouped(places, "socket").map(([socket, inSocket]) =>
      this.box(`Socket ${socket}`, "socket", grouped(inSocket, "numa").map(([node, inNode]) =>
        this.box(`NUMA node ${node}`, "numa", grouped(inNode, "core").map(([, threads]) => this.core(threads, kinds)))))));
    const legend = new Map([...kinds.values()].map((kind) => [kind.name, kind]));
    byId("cpus-legend").replaceChildren(...[...legend.values()].map((kind) =>
      make("li", {}, make("i", {class: `cpu ${kind.of}`, "aria-hidden": "true"}), kind.name)));
  }

  box(title, kind, children) {
    return make("div", {class: kind}, make("h3", {}, title), make("ul", {class: `${kind}-parts`}, ...children.map((child) =>
      child.tagName === "LI" ? child : make("li", {}, child))));
  }

  core(threads, kinds) {
    return make("li", {class: "core"}, ...threads.map(({cpu}) => {
      const kind = kinds.get(cpu) || {name: "unused", of: "unused"};
      return make("span", {class: `cpu ${kind.of}`, title: `CPU ${cpu}: ${kind.name}`}, String(cpu), make("span", {class: "unseen"}, ` ${kind.name}; `));
    }));
  }

  showOwner(cells, owner) {
    const short = owner.cpus ? "" : owner.refusal || "no exclusive CPUs yet";
    const strays = owner.cpus && owner.runs_on && owner.runs_on !== owner.cpus ? `runs on ${owner.runs_on}` : "";
    setText(cells.container, owner.name);
    setText(cells.cpus, owner.cpus || "–");
    setText(cells.requested, owner.requested);
    const place = owner.shares_in_pod ? "shared in the pod" : "as assigned";
    setText(cells.state, short || strays || (owner.runs_on ? place : "no cgroup yet"));
    setClass(cells.state, short || strays ? "bad" : "");
  }
}
