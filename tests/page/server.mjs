// SPDX-License-Identifier: Apache-2.0
// Server: what headroomd serves of the page, from a recording: one status document after another, and the audit
// records. A test changes what it says while a browser looks.
import {readFileSync} from "node:fs";
import {createServer} from "node:http";
import {join} from "node:path";

// As headroomd reports it: all pods counted by class, and of each class the foremost.
function limited(status, most) {
  if (!Array.isArray(status.pods)) return status;
  const classes = new Map();
  for (const pod of status.pods) classes.set(pod.qos, [...classes.get(pod.qos) || [], pod]);
  const pods = [...classes.values()].flatMap((each) => [...each].sort((a, b) => b.over_request - a.over_request).slice(0, most));
  const qos_classes = [...classes].map(([qos, each]) => ({qos, pods: each.length, over_request: each.reduce((sum, pod) => sum + Math.max(0, pod.over_request || 0), 0)}));
  return {...status, qos_classes, pods};
}

export class Server {
  constructor(built, recorded) {
    this.page = readFileSync(join(built, "page.html"));
    this.policy = readFileSync(join(built, "policy.txt"), "utf8");
    this.recording = readFileSync(join(recorded, "status.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
    this.records = readFileSync(join(recorded, "evictions.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
    this.reset();
  }

  reset() {
    Object.assign(this, {step: 0, paused: false, down: 0, status: null, cpus: null, history: {at_ns: [], signals: {}, waited_ns: {}}, evictions: [...this.records], asked: [], tag: 1});
  }

  async listen() {
    this.server = createServer((request, answer) => this.answer(request, answer));
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.server.address().port}/`;
  }

  close() {
    this.server.closeAllConnections?.();
    return new Promise((done) => this.server.close(done));
  }

  // How often its status was asked for.
  turns() {
    return this.asked.filter((path) => path === "/api/status").length;
  }

  addEviction(record) {
    this.evictions.push(record);
    ++this.tag;
  }

  // The recording, step by step, and its last document from then on.
  nextStatus() {
    if (this.status) return this.status;
    const step = Math.min(this.step, this.recording.length - 1);
    if (!this.paused) ++this.step;
    return this.recording[step];
  }

  answer(request, answer) {
    const [path, query] = request.url.split("?");
    this.asked.push(path);
    const send = (status, type, body, headers = {}) => {
      answer.writeHead(status, {"Content-Type": type, "X-Content-Type-Options": "nosniff", ...headers});
      answer.end(body);
    };
    if (path === "/") return send(200, "text/html; charset=utf-8", this.page, {"Content-Security-Policy": this.policy});
    if (this.down) return send(this.down, "text/plain", "");
    if (path === "/api/status") return send(200, "application/json", JSON.stringify(limited(this.nextStatus(), Number(new URLSearchParams(query).get("pods") || Infinity))));
    if (path === "/api/history") return send(200, "application/json", JSON.stringify(this.history));
    if (path === "/api/cpus") return send(200, "application/json", JSON.stringify(this.cpus));
    if (path !== "/api/evictions") return send(404, "text/plain", "");
    const tag = `"${this.tag}"`;
    if (request.headers["if-none-match"] === tag) return send(304, "application/json", undefined, {ETag: tag});
    return send(200, "application/json", JSON.stringify(this.evictions.slice(-20)), {ETag: tag});
  }
}
