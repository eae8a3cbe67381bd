// SPDX-License-Identifier: Apache-2.0
// What the page takes of the machine of who looks: cost.mjs PODS SECONDS, over the recording, its last document with so many
// pods, each of which holds something else at every answer. Writes {pods, seconds, answers, page_percent, browser_percent}: CPU
// time, as a share of one core, of the page's own thread and of all of the browser's processes.
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

import {launch, open, settled} from "./browser.mjs";
import {measure} from "./meter.mjs";
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
const asked = server.turns(), cost = await measure(browser, page, seconds);
console.log(JSON.stringify({pods, seconds: cost.seconds, answers: server.turns() - asked, page_percent: cost.page, browser_percent: cost.browser}));
if (page.complaints.length) {
  console.error(page.complaints.join("\n"));
  process.exitCode = 1;  // what a page costs that does not work says nothing
}
await browser.close();
await server.close();
