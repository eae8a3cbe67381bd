// SPDX-License-Identifier: Apache-2.0
// What the page takes of the machine of who looks: cost.mjs PODS SECONDS, over the recording, its last document with so many
// pods, each of which holds something else at every answer. Writes {pods, seconds, answers, page_percent, browser_percent}: CPU
// time, as a share of one core, of the page's own thread and of all of the browser's processes.
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

import {launch, open, settled} from "./browser.mjs";
import {Server} from "./server.mjs";

const [pods, seconds] = process.argv.slice(2).map(Number);
const kClasses = ["BestEffort", "Burstable", "Guaranteed"];
const kPast = 200;  // answers: charts that are full, as after some minutes

// A node of so many pods. What they hold moves, so that nothing on the page stays as it is.
function crowd(server) {
  const last = server.recording[server.recording.length - 1];
  const names = Array.from({length: pods}, (_, i) => ({...last.pods[i % last.pods.length], name: `pod-${i}`, uid: `uid-${i}`, qos: kClasses[i % 3]}));
  let at = last.at_ns;
  return () => {
    at += 3e9;  // as often as the page asks
    const moved = names.map((pod, i) => ({...pod, working_set: pod.working_set + (i * 7919 + at) % 65536 * 4096, over_request: (i * 104729 + at / 1e6) % 1e9}));
    const signals = last.signals.map((signal) => ({...signal, available: signal.available * (0.9 + 0.1 * Math.sin(at / 1e10))}));
    return {...last, at_ns: at, pods_at_ns: at, pods: moved, signals};
  };
}

class Meter {
  static async of(browser, page) {
    const meter = new Meter();
    meter.page = await page.context().newCDPSession(page);
    meter.browser = await browser.newBrowserCDPSession();
    await meter.page.send("Performance.enable", {timeDomain: "threadTicks"});
    return meter;
  }

  async read() {
    const {metrics} = await this.page.send("Performance.getMetrics");
    const {processInfo} = await this.browser.send("SystemInfo.getProcessInfo");
    return {at: performance.now() / 1000, page: metrics.find((each) => each.name === "TaskDuration").value,
      browser: processInfo.reduce((sum, each) => sum + each.cpuTime, 0)};
  }
}

const server = new Server(process.env.PAGE_BUILT, join(dirname(fileURLToPath(import.meta.url)), "recorded"));
server.nextStatus = crowd(server);
await server.listen();
const browser = await launch();
// The charts are filled at forty times the pace first.
const page = await open(browser, server.url, {before: "const timeout = setTimeout; let quick = true; globalThis.settle = () => { quick = false; };\n" +
  "globalThis.setTimeout = (what, pause, ...rest) => timeout(what, quick ? pause / 40 : pause, ...rest);"});
await settled(page);
while (server.turns() < kPast) await page.waitForTimeout(100);
await page.evaluate(() => globalThis.settle());
await page.waitForTimeout(3000);
const meter = await Meter.of(browser, page), asked = server.turns(), before = await meter.read();
await page.waitForTimeout(1000 * seconds);
const after = await meter.read(), took = after.at - before.at;
const percent = (what) => Number((100 * (after[what] - before[what]) / took).toFixed(2));
console.log(JSON.stringify({pods, seconds: Number(took.toFixed(1)), answers: server.turns() - asked, page_percent: percent("page"), browser_percent: percent("browser")}));
if (page.complaints.length) {
  console.error(page.complaints.join("\n"));
  process.exitCode = 1;  // what a page costs that does not work says nothing
}
await browser.close();
await server.close();
