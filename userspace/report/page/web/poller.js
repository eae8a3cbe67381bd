// SPDX-License-Identifier: Apache-2.0
// Poller: requests every three seconds or more while the page is visible, and not at all while it is hidden.

const kEvery = 3000, kSlowest = 10_000, kTimeout = 10_000;  // milliseconds
const kCpusEvery = 5;  // turns between requests: owners of CPUs change when pods start and end
// A large document costs both daemon and browser, so it is requested less often.
const kCharactersASecond = 10 << 10;

async function ask(path, headers = {}) {
  const answer = await fetch(path, {cache: "no-store", headers, signal: AbortSignal.timeout(kTimeout)});
  if (!answer.ok && answer.status !== 304) throw new Error(answer.status === 503 ? "headroomd is busy" : `${path}: status ${answer.status}`);
  return answer;
}

class Live {
  constructor() {
    this.detail = new PodDetail();
    Object.assign(this, {head: new Head(), tiles: new Tiles(), signals: new Signals(), pods: new Pods(this.detail), pressure: new Pressure(),
      slices: new Slices(), cpus: new Cpus(), evictions: new Evictions(), turns: 0, failures: 0, tag: "", length: 0, timer: 0, asking: false});
    document.addEventListener("visibilitychange", () => this.look());
    // A search needs pods that were not sent: they are requested at once.
    this.pods.onChange = () => this.look();
    this.look();
  }

  look() {
    clearTimeout(this.timer);
    if (!document.hidden && !this.asking) this.turn();
  }

  async turn() {
    this.asking = true;
    try {
      if (!this.answered) await this.askHistory();
      await this.askStatus();
      await this.askEvictions();
      if (this.turns++ % kCpusEvery === 0) this.cpus.show(await (await ask("/api/cpus")).json());
      this.settle(0);
    } catch (error) {
      this.settle(this.failures + 1, error);
    }
    this.asking = false;
    const pause = Math.max(kEvery * Math.max(1, this.failures), 1000 * this.length / kCharactersASecond);
    if (!document.hidden) this.timer = setTimeout(() => this.look(), Math.min(kSlowest, pause));
  }

  // Called once: the history that headroomd keeps, so that charts do not begin empty.
  async askHistory() {
    const history = table(await (await ask("/api/history")).json());
    this.tiles.remember(history);
    this.signals.remember(history);
    this.pressure.remember(history);
  }

  // Records are transferred only if the log changed.
  async askEvictions() {
    const answer = await ask("/api/evictions?last=20", this.tag ? {"If-None-Match": this.tag} : {});
    if (answer.status === 304) return;
    const records = await answer.json();
    this.tag = answer.headers.get("ETag") || "";
    this.evictions.show(list(records));
    this.detail.setRecords(this.evictions.latest);
  }

  async askStatus() {
    const text = await (await ask(`/api/status${this.pods.wanted()}`)).text();
    this.length = text.length;
    const status = JSON.parse(text);
    if (!isNumber(table(status).at_ns)) throw new Error("headroomd has no readings yet");
    this.head.show(status, this.evictions.last);
    this.tiles.show(status, this.evictions.last);
    this.signals.show(status, this.evictions.at);
    this.pods.show(status);
    this.pressure.show(status);
    this.slices.show(status.slices);
    this.answered = new Date();
  }

  settle(failures, error) {
    const link = byId("link");
    setClass(link, failures ? "link lost" : "link");
    setText(link, failures
      ? `No answer (${error.name === "TypeError" ? "headroomd cannot be reached" : error.name === "TimeoutError" ? "timeout" : error.message})${this.answered ? `; data from ${clock(this.answered)}` : ""}. Retrying.`
      : "Live");
    if (failures === 3) announce("headroomd does not answer");
    if (failures === 0 && this.failures >= 3) announce("headroomd answers again");
    this.failures = failures;
  }
}

new Live();
