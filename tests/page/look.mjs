// SPDX-License-Identifier: Apache-2.0
// Looks at the page as people do. Its environment: PAGE_BUILT, PAGE_MODULES, PAGE_BROWSER, PAGE_SHOTS (a folder
// for screenshots, or nothing). Writes [{name, status, reason}] to standard output.
import assert from "node:assert/strict";
import {statSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

import {accessibilityFaults, kDesktop, kPhone, launch, open, settled} from "./browser.mjs";
import {Server} from "./server.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const built = process.env.PAGE_BUILT, shots = process.env.PAGE_SHOTS;
const server = new Server(built, join(here, "recorded"));
let browser;

const text = (page, selector) => page.locator(selector).innerText();
const copyOf = (value) => structuredClone(value);
const lastStatus = () => copyOf(server.recording[server.recording.length - 1]);
const turns = async (page, count) => {
  const wanted = server.turns() + count;
  while (server.turns() < wanted) await page.waitForTimeout(50);
  await page.waitForTimeout(150);  // for what the last answer brought to be shown
};

// Two sockets of four cores of two threads: one pod pinned, one refused.
function cpuMap() {
  const cpus = Array.from({length: 16}, (_, cpu) => ({cpu, core: cpu % 8, uncore: 0, socket: Math.floor(cpu % 8 / 4), numa: Math.floor(cpu % 8 / 4)}));
  const owner = (pod, wanted, cpus, more = {}) => ({namespace: "shop", pod, uid: pod, container: "main", requested: wanted, cpus, runs_on: cpus, refusal: "", partition: "member", ...more});
  return {mode: "enforce", policy: "static", cpus, reserved: "0", shared: "0-3,6-11,14", offline: "15", isolated: "", nohz_full: "", error: "",
    containers: [owner("db", 4, "4-5,12-13"), owner("late", 6, "", {refusal: "not enough CPUs"})],
    shared_pool: {size_millicores: 7000, requested_millicores: 2500, unknown_pods: 0, enforced: true}};
}

async function saneText(page) {
  const words = (await text(page, "body")).match(/NaN|undefined|\bnull\b|Infinity|\[object/g);
  assert.equal(words, null, `on the page: ${words}`);
}

async function fits(page) {
  const [needed, wide] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(needed <= wide, `the page is ${needed} wide in a window of ${wide}`);
}

const tests = {
  async "is one small document"() {
    assert.ok(statSync(join(built, "page.html")).size < 150 * 1024);
  },

  async "charts the past, the thresholds and the forecast"() {
    const page = await open(browser, server.url);
    await settled(page);
    await turns(page, server.recording.findIndex((each) => each.thresholds.some((one) => one.forecast_seconds > 0)) + 4);
    server.paused = true;
    const card = page.locator(".card", {has: page.getByRole("heading", {name: "memory.available", exact: true})});
    const past = await card.locator("path.past").getAttribute("d");
    assert.ok(past.split(/[ML]/).length > 4, past);
    assert.equal(await card.locator("svg line.hard, svg line.soft").count(), 2);
    assert.match(await card.locator("path.forecast").getAttribute("d"), /^M60 \d+\.\dL\d/);
    assert.match(await card.innerText(), /hard .*above – reached in/);
    await card.getByText("Readings as a table").press("Enter");
    assert.ok(await card.locator("tbody tr").count() >= 1);
    await saneText(page);
    assert.deepEqual(page.complaints, []);
  },

  async "an eviction appears and opens to its proof by keyboard"() {
    const last = server.evictions.pop();
    const page = await open(browser, server.url);
    await settled(page);
    const before = await page.locator("#evictions > li").count();
    server.addEviction(last);
    await page.locator("#announce", {hasText: `${last.pod.namespace}/${last.pod.name}`}).waitFor();
    assert.equal(await page.locator("#evictions > li").count(), before + 1);
    const first = page.locator("#evictions > li").first();
    for (let i = 0; i < 100 && !await first.evaluate((item) => item.contains(document.activeElement)); ++i) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await first.getByText("first of the pods that may be evicted").waitFor();
    const proof = await first.innerText();
    assert.match(proof, /was .* of .*, below its (hard|soft) threshold/);
    assert.match(proof, /the reading is judged, the pods are ranked/);
    assert.equal(await first.locator("tbody tr").count(), last.ranking.length);
    // It stays open and keeps the focus whatever comes.
    await turns(page, 2);
    assert.ok(await first.locator("details").first().evaluate((item) => item.open && item.contains(document.activeElement)));
    await page.keyboard.press("Enter");
    assert.ok(!await first.locator("details").first().evaluate((item) => item.open));
    assert.deepEqual(page.complaints, []);
  },

  async "names from the node are text and nothing else"() {
    const status = lastStatus(), evil = '<img src=x onerror="globalThis.owned=1"><script>globalThis.owned=1</script>';
    for (const pod of status.pods) Object.assign(pod, {name: evil, namespace: evil, qos: evil, state: evil, stalls: {[evil]: {ns: 1, count: 1, p99_ns: 1}}});
    status.top_waiters = {throttled: {namespace: evil, name: evil, ns_per_s: 1e6}};
    status.programs = {[evil]: {loaded: false, hook: "", lost: 0}};
    status.conditions = {[evil]: true};
    status.node = {...status.node, name: evil};
    status.mode = status.version = evil;
    status.thresholds[0].signal = status.signals[0].signal = evil;
    status.taints = [{taint: evil, from: "operator"}];
    status.slices = {mode: evil, error: evil, slices: [{slice: evil, role: evil, exists: true, share: {}, usage: {}, settings: [{setting: evil, differs: true}]}]};
    server.status = status;
    server.cpus = cpuMap();
    server.cpus.mode = server.cpus.error = evil;
    for (const owner of server.cpus.containers) owner.pod = owner.container = owner.refusal = evil;
    const record = copyOf(server.records[0]);
    record.pod.name = record.message = record.outcome = record.kind = record.error = record.time = record.cgroup.path = evil;
    for (const each of record.ranking) each.name = each.selection = evil;
    server.evictions = [record];
    const page = await open(browser, server.url);
    await settled(page);
    await page.locator("#evictions summary").first().press("Enter");
    await page.getByText("The record as it is").press("Enter");
    await page.locator("#pods tbody button").first().press("Enter");
    await turns(page, 2);
    assert.ok((await text(page, "#pod-name")).includes(evil));
    assert.ok((await text(page, "#pod-waits")).includes(evil));
    assert.equal(await page.locator("img, main script, dialog script").count(), 0);
    assert.equal(await page.evaluate(() => globalThis.owned), undefined);
    assert.ok((await text(page, "#pods")).includes(evil));
    assert.deepEqual(page.complaints, []);
  },

  async "its policy lets no other script in"() {
    const page = await open(browser, server.url);
    await settled(page);
    const refused = await page.evaluate(() => {
      try {
        document.body.innerHTML += "<b>x</b>";
        return false;
      } catch {
        return true;
      }
    });
    assert.ok(refused, "markup was made of text");
  },

  async "what is not known is said to be"() {
    const status = lastStatus();
    status.node = status.taints = status.pods_at_ns = status.slices = null;
    status.waits = {stalls: null, throttled: null};
    for (const each of status.signals) each.at_ns = each.available = each.capacity = null;
    for (const each of status.thresholds) each.limit = each.available = each.forecast_seconds = each.below_for_seconds = null;
    for (const pod of status.pods)
      Object.assign(pod, {working_set: null, over_request: null, limit: null, qos: "", name: "", stalls: {}, throttle_waits: null});
    server.status = status;
    server.evictions = [{time: "2026-11-21T12:00:00Z", outcome: "failed", error: "No such process", pod: {uid: "1"}, signal: "memory.available", kind: "hard"}];
    const page = await open(browser, server.url);
    await settled(page);
    await page.locator("#evictions summary").first().press("Enter");
    await turns(page, 2);
    await saneText(page);
    assert.match(await text(page, "#pressure"), /not watched/);
    assert.deepEqual(page.complaints, []);
  },

  async "where the memory of processes is, on a node with swap"() {
    server.status = lastStatus();
    const page = await open(browser, server.url);
    await settled(page);
    assert.doesNotMatch(await text(page, "#facts"), /memory of processes/);
    const status = lastStatus(), MiB = 1 << 20;
    status.swap = {swap: true, resident: 600 * MiB, cold: 100 * MiB, compressed: 90 * MiB, compressed_size: 30 * MiB, on_disk: 12 * MiB};
    server.status = status;
    await turns(page, 2);
    assert.match(await text(page, "#facts"), /memory of processes\s+600Mi resident \(100Mi cold\), 90Mi compressed in 30Mi, 12Mi on disk/);
    server.status = {...status, swap: {...status.swap, cold: null}};
    await turns(page, 2);
    assert.match(await text(page, "#facts"), /600Mi resident \(– cold\)/);
    await saneText(page);
    assert.deepEqual(page.complaints, []);
  },

  async "the CPU map says who has which, by socket, node and core"() {
    server.cpus = cpuMap();
    const page = await open(browser, server.url);
    await page.locator("#cpus-section").waitFor();
    if (shots) await page.locator("#cpus-section").screenshot({path: join(shots, "page-cpus.png")});
    assert.equal(await page.locator("#cpus-map .socket").count(), 2);
    assert.equal(await page.locator("#cpus-map .numa").count(), 2);
    assert.equal(await page.locator("#cpus-map .core").count(), 8);
    assert.match(await page.locator("#cpus-map [title^='CPU 5:']").getAttribute("title"), /shop\/db\/main/);
    assert.match(await text(page, "#cpus-map"), /0\s*reserved;/);
    assert.match(await text(page, "#cpus-legend"), /reserved[\s\S]*shared/);
    assert.match(await text(page, "#cpus-note"), /shared pool has 7 CPUs without the reserved ones; 2\.50 are requested/);
    assert.match(await text(page, "#cpus-rows"), /shop\/db\/main\s+4-5,12-13\s+4\s+as assigned[\s\S]*shop\/late\/main\s+–\s+6\s+not enough/);
    assert.deepEqual(await accessibilityFaults(page), []);
    assert.deepEqual(page.complaints, []);
  },

  async "without a CPU manager there is no map"() {
    const page = await open(browser, server.url);
    await settled(page);
    await turns(page, 1);
    assert.ok(await page.locator("#cpus-section").isHidden());
  },

  async "slices show their use against what is meant for them"() {
    const status = lastStatus();
    const slice = (name, memory, more = {}) => ({slice: name, role: "pods", exists: true, share: {cpu: 1.5, memory: 1 << 30, tasks: 1000},
      usage: {cpu: 0.25, memory, tasks: 12}, settings: [], ...more});
    status.slices = {mode: "enforce", slices: [slice("/kubepods.slice", 512 << 20), slice("/system.slice", 1.25 * (1 << 30)),
      slice("/kube.slice", null, {settings: [{setting: "memory.max", differs: true}]})]};
    server.status = status;
    const page = await open(browser, server.url);
    await settled(page);
    const shown = await text(page, "#slices-rows");
    assert.match(shown, /kubepods\.slice[\s\S]*512Mi of 1Gi[\s\S]*as configured/);
    assert.match(shown, /memory\.max: differs from the configuration/);
    assert.equal(await page.locator("#slices-rows .too-much").count(), 1);
  },

  async "a pod whose waits are unknown is not said to have waited for nothing"() {
    const status = lastStatus();
    for (const pod of status.pods) Object.assign(pod, {stalls: {}, throttle_waits: null});
    server.status = status;
    const page = await open(browser, server.url);
    await settled(page);
    await page.locator("#pods tbody button").first().press("Enter");
    await turns(page, 1);
    assert.match(await text(page, "#pod-waits-note"), /^It has not waited/);
    for (const pod of status.pods) pod.stalls = null;
    await turns(page, 2);
    assert.match(await text(page, "#pod-waits-note"), /^It is unknown/);
    assert.deepEqual(page.complaints, []);
  },

  async "a thousand pods are cut to what can be read, and shown when asked"() {
    const status = lastStatus(), pod = status.pods[0];
    status.pods = Array.from({length: 1000}, (_, i) => ({...pod, name: `pod-${i}`, uid: `uid-${i}`, cgroup: i, over_request: i << 20, qos: i % 2 ? "Burstable" : "BestEffort"}));
    server.status = status;
    const page = await open(browser, server.url);
    await settled(page);
    assert.equal(await page.locator("#pods tbody tr:not(.tier)").count(), 50);
    assert.match(await page.locator("#pods tbody tr:not(.tier)").first().innerText(), /pod-998/);
    await page.getByRole("button", {name: "Show all 1000 pods"}).press("Enter");
    await turns(page, 1);
    assert.equal(await page.locator("#pods tbody tr:not(.tier)").count(), 1000);
    assert.match(await page.locator("#pods tr.tier").first().innerText(), /500 pods, 244Gi above requests$/);
  },

  async "a held condition, a missing program and the mode are said before all is well"() {
    const calm = lastStatus();
    for (const each of calm.thresholds) Object.assign(each, {met: false, below_for_seconds: null, forecast_seconds: null});
    for (const pod of calm.pods) pod.state = "running";
    calm.conditions = {MemoryPressure: true, DiskPressure: false};
    calm.counters.kernel_oom_kills = {limit: 1, pods: 2, node: 4};
    server.status = calm;
    const page = await open(browser, server.url);
    await settled(page);
    await turns(page, 1);
    assert.match(await text(page, "#verdict"), /MemoryPressure is still reported/);
    assert.match(await text(page, "#facts"), /kernel OOM kills\s*7/);
    assert.match(await text(page, "#facts"), /last eviction\s*\S.*default\//);
    server.status = {...calm, conditions: {MemoryPressure: false}, programs: {stall: {loaded: false, hook: "", lost: 0}}};
    await turns(page, 2);
    assert.match(await text(page, "#verdict"), /1 BPF program could not be loaded: stall/);
    server.status = {...calm, conditions: {}, mode: "observe"};
    await turns(page, 2);
    assert.match(await text(page, "#verdict"), /^No threshold is crossed\. .*headroomd only observes/);
  },

  async "the charts begin with what headroomd remembers"() {
    const status = lastStatus(), now = status.at_ns = 4000e9;
    for (const each of status.signals) each.at_ns = now;
    status.waits.stalls.global = {ns: 9e9, count: 10, p99_ns: 1e6};
    const times = Array.from({length: 180}, (_, i) => now - (180 - i) * 10e9);
    server.status = status;
    server.history = {at_ns: times, signals: {"memory.available": times.map((_, i) => i === 5 ? null : 600e6 - i * 1e6)},
      waited_ns: {global: times.map((_, i) => i * 50e6)}};
    const page = await open(browser, server.url);
    await settled(page);
    const card = page.locator(".card", {has: page.getByRole("heading", {name: "memory.available", exact: true})});
    const past = await card.locator("path.past").getAttribute("d");
    assert.ok(past.split("L").length > 150, past);
    assert.match(await card.innerText(), /30 min ago/);
    assert.match(await page.locator("#pressure-rows tr").first().innerText(), /\t5\.0\t/);
    assert.equal(server.asked.filter((path) => path === "/api/history").length, 1);
    await saneText(page);
    assert.deepEqual(page.complaints, []);
  },

  async "who waits most is named by cause"() {
    server.status = {...lastStatus(), waits: {stalls: {}, throttled: {ns: 1e9, count: 3, p99_ns: 1e6}},
      top_waiters: {throttled: {namespace: "shop", name: "web", ns_per_s: 2.5e6}}};
    const page = await open(browser, server.url);
    await settled(page);
    assert.match(await text(page, "#pressure-rows"), /CPU quota[\s\S]*shop\/web, 2\.5 ms\/s/);
  },

  async "the verdict says mode, held conditions, missing programs and the last eviction"() {
    const status = lastStatus();
    for (const each of status.thresholds) Object.assign(each, {met: false, below_for_seconds: null, forecast_seconds: null});
    status.conditions = {MemoryPressure: false, DiskPressure: true, PIDPressure: false};
    status.programs = {stall: {loaded: false, hook: "", lost: 0}, lifecycle: {loaded: true, hook: "cgroup", lost: 0}};
    server.status = status;
    const page = await open(browser, server.url);
    await settled(page);
    await turns(page, 1);
    const verdict = await text(page, "#verdict");
    assert.match(verdict, /DiskPressure is still reported/);
    assert.match(verdict, /1 BPF program could not be loaded: stall/);
    assert.match(verdict, /Mode enforce\. Last eviction: .*default\/scratch/);
    assert.match(await page.locator("#verdict").getAttribute("class"), /near/);
    server.status = {...status, conditions: {}, mode: "observe"};
    await turns(page, 1);
    assert.match(await text(page, "#verdict"), /No threshold is crossed, but 1 BPF program.*only observes/);
    server.status = {...status, conditions: {}, programs: {}};
    await turns(page, 1);
    assert.match(await page.locator("#verdict").getAttribute("class"), /calm/);
  },

  async "tiles show the node in numbers"() {
    const status = lastStatus();
    status.waits.throttled = {ns: 5e9, count: 1, p99_ns: 1};
    server.status = status;
    const times = Array.from({length: 60}, (_, i) => status.at_ns - (60 - i) * 1e9);
    server.history = {at_ns: times, signals: {"memory.available": times.map((_, i) => 600e6 - i * 1e6)}, waited_ns: {throttled: times.map((_, i) => i * 1e7)}};
    const page = await open(browser, server.url);
    await settled(page);
    const tiles = await page.locator("#tiles .tile").allInnerTexts();
    assert.deepEqual(tiles.map((each) => each.split("\n")[0]), ["Memory", "CPU quota waits", "Disk", "Tasks", "Evictions", "headroomd"]);
    assert.match(tiles[0], /562Mi\n+of 1\.9Gi available, threshold 200Mi/);
    assert.match(tiles[2], /nodefs\.available, 83 % left/);
    assert.match(tiles[4], /^Evictions\n+1\n/);
    assert.ok((await page.locator("#tiles .spark path").first().getAttribute("d")).split("L").length > 50);
    await saneText(page);
  },

  async "a value of a chart is read by the pointer and by the arrow keys"() {
    const status = lastStatus(), now = status.at_ns = 4000e9;
    for (const each of status.signals) each.at_ns = now;
    const times = Array.from({length: 180}, (_, i) => now - (180 - i) * 10e9);
    server.status = status;
    server.history = {at_ns: times, signals: {"memory.available": times.map((_, i) => (700 - i) * 1048576)}, waited_ns: {}};
    const page = await open(browser, server.url);
    await settled(page);
    const plot = page.locator(".card", {has: page.getByRole("heading", {name: "memory.available", exact: true})}).getByRole("slider").first();
    assert.ok(await plot.locator(".tick-y").count() >= 2);
    assert.deepEqual(await plot.locator(".tick-x").allInnerTexts(), ["10m", "15m", "20m"]);
    await plot.focus();
    await page.keyboard.press("Home");
    assert.equal(await plot.getAttribute("aria-valuetext"), "700Mi, 30m ago");
    await page.keyboard.press("ArrowRight");
    assert.equal(await plot.getAttribute("aria-valuetext"), "697Mi, 29m30s ago");
    await page.keyboard.press("End");
    assert.match(await plot.locator(".reading").innerText(), /, now$/);
    await page.keyboard.press("Escape");
    assert.ok(await plot.locator(".reading").isHidden());
    const box = await plot.boundingBox();
    await page.mouse.move(box.x + box.width * 0.43, box.y + 20);
    assert.match(await plot.locator(".reading").innerText(), /^6\d\dMi, 14m\d*s? ago|^6\d\dMi, 15m/);
    assert.deepEqual(page.complaints, []);
  },

  async "another threshold is tried over the last half hour"() {
    const status = lastStatus(), now = status.at_ns = 4000e9;
    for (const each of status.signals) Object.assign(each, {at_ns: now, available: 700 * 1048576});
    const times = Array.from({length: 180}, (_, i) => now - (180 - i) * 10e9);
    server.status = status;
    // Twice below 500Mi: from 20 to 18 minutes ago, and from 5 to 4 minutes ago.
    const low = (ago) => (ago >= 1080 && ago <= 1200) || (ago >= 240 && ago <= 300);
    server.history = {at_ns: times, signals: {"memory.available": times.map((at) => (low((now - at) / 1e9) ? 400 : 700) * 1048576)}, waited_ns: {}};
    const page = await open(browser, server.url);
    await settled(page);
    const card = page.locator(".card", {has: page.getByRole("heading", {name: "memory.available", exact: true})});
    await card.getByText("What if the threshold were another one?").press("Enter");
    assert.match(await card.innerText(), /With a hard threshold of 200Mi, none of the readings/);
    const range = card.getByRole("slider", {name: "Another hard threshold"});
    await range.focus();
    for (let i = 0; i < 5; ++i) await page.keyboard.press("PageUp");
    assert.match(await card.innerText(), /evictions would have begun 20m ago\. In the last 30m it was crossed 2 times, for 3m in all\./);
    assert.equal(await card.locator("svg line.whatif").count(), 1);
    await turns(page, 1);
    assert.match(await card.innerText(), /crossed 2 times/);
    assert.deepEqual(page.complaints, []);
  },

  async "pods are searched, sorted, grouped and opened by keyboard"() {
    const status = lastStatus();
    const pods = Array.from({length: 120}, (_, i) => ({...status.pods[0], namespace: i % 2 ? "shop" : "batch", name: `pod-${i}`, uid: `u${i}`, cgroup: i,
      working_set: (i + 1) * 1048576, over_request: 1e9 - i, eviction_order: i + 1, qos: "Burstable", stalls: {limit: {ns: 2e9, count: 4, p99_ns: 1e6}}}));
    server.status = {...status, pods};
    server.evictions = [{...copyOf(server.records[0]), pod: {namespace: "shop", name: "pod-77", uid: "old"}}];
    const page = await open(browser, server.url);
    await settled(page);
    const names = () => page.locator("#pods tbody tr:not(.tier) th").allInnerTexts();
    assert.equal((await names()).length, 25);
    await page.getByLabel("Search").focus();
    await page.keyboard.type("SHOP pod-7");
    await page.locator("#pods-found", {hasText: "6 pods found"}).waitFor();
    assert.deepEqual((await names()).sort(), ["shop/pod-7", "shop/pod-71", "shop/pod-73", "shop/pod-75", "shop/pod-77", "shop/pod-79"]);
    await page.getByRole("button", {name: "Usage"}).press("Enter");
    assert.equal((await names())[0], "shop/pod-79");
    assert.equal(await page.getByRole("columnheader", {name: "Usage"}).getAttribute("aria-sort"), "descending");
    await page.getByRole("button", {name: "Usage"}).press("Enter");
    assert.equal((await names())[0], "shop/pod-7");
    await page.getByLabel("Search").fill("pod-7");
    await page.getByLabel("Group by").selectOption("namespace");
    assert.deepEqual((await page.locator("#pods .tier").allInnerTexts()).map((each) => each.split(" ")[1]), ["batch", "shop"]);
    await page.getByRole("button", {name: "shop/pod-77"}).press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    assert.match(await dialog.innerText(), /It would be evicted 78th of 120 pods/);
    assert.match(await text(page, "#pod-waits"), /limit\s+2s\s+4\s+1ms/);
    assert.equal(await dialog.locator("#pod-records > li").count(), 1);
    await turns(page, 2);
    await fits(page);
    await saneText(page);
    if (shots) await page.screenshot({path: join(shots, "page-pod.png")});
    assert.deepEqual(await accessibilityFaults(page), []);
    await page.keyboard.press("Escape");
    assert.ok(await dialog.isHidden());
    assert.deepEqual(page.complaints, []);
  },

  async "the timeline opens an eviction"() {
    const page = await open(browser, server.url);
    await settled(page);
    await turns(page, 1);
    const marks = page.locator("#timeline-marks button");
    assert.equal(await marks.count(), server.evictions.length);
    await marks.first().press("Enter");
    assert.ok(await page.locator("#evictions > li > details").last().evaluate((item) => item.open && item.contains(document.activeElement)));
    assert.deepEqual(page.complaints, []);
  },

  async "it is printed without what is for a screen"() {
    const page = await open(browser, server.url, {viewport: {width: 794, height: 1123}});
    await settled(page);
    await turns(page, 2);
    await page.emulateMedia({media: "print"});
    assert.ok(await page.locator("#pods-search").isHidden());
    assert.ok(await page.locator("footer").isHidden());
    assert.ok(await page.locator("#tiles").isVisible());
    assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector(".scroll")).overflowX), "visible");
  },

  async "it fits a screen of 4K"() {
    const page = await open(browser, server.url, {viewport: {width: 3840, height: 2160}});
    await settled(page);
    await fits(page);
  },

  async "nothing is touched while nothing changes"() {
    server.status = lastStatus();
    const page = await open(browser, server.url);
    await settled(page);
    await turns(page, 2);
    await page.evaluate(() => {
      globalThis.touched = [];
      new MutationObserver((all) => globalThis.touched.push(...all.map((each) => `${each.type} ${each.attributeName} of ${each.target.outerHTML || each.target.textContent}`))).observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
    });
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const layouts = async () => (await session.send("Performance.getMetrics")).metrics.find((each) => each.name === "LayoutCount").value;
    const before = await layouts();
    await turns(page, 3);
    assert.deepEqual(await page.evaluate(() => globalThis.touched), []);
    assert.equal(await layouts(), before);
  },

  async "nothing is asked while the page is hidden"() {
    const page = await open(browser, server.url, {before: () => {
      globalThis.away = false;
      Object.defineProperty(Document.prototype, "hidden", {get: () => globalThis.away});
    }});
    await settled(page);
    const go = (away) => page.evaluate((gone) => {
      globalThis.away = gone;
      document.dispatchEvent(new Event("visibilitychange"));
    }, away);
    await go(true);
    await page.waitForTimeout(500);
    const asked = server.asked.length;
    await page.waitForTimeout(2500);
    assert.equal(server.asked.length, asked);
    await go(false);
    await turns(page, 2);
  },

  async "a silent headroomd is reported, and waited for"() {
    server.status = {};
    const page = await open(browser, server.url);
    await page.locator("#link.lost", {hasText: "has no readings yet"}).waitFor();
    server.status = null;
    await settled(page);
    server.down = 503;
    await page.locator("#link.lost", {hasText: "headroomd is busy"}).waitFor();
    await page.locator("#announce", {hasText: "headroomd does not answer"}).waitFor();
    server.down = 0;
    await settled(page);
    await page.locator("#announce", {hasText: "headroomd answers again"}).waitFor();
  },
};

for (const [device, viewport] of Object.entries({desktop: kDesktop, phone: kPhone}))
  for (const dark of [false, true]) {
    const look = dark ? "dark" : "light";
    tests[`on a ${device}, ${look}: readable, accessible, silent`] = async () => {
      server.evictions = server.evictions.slice(0, 1);  // the other is of after the recording
      server.cpus = cpuMap();
      const page = await open(browser, server.url, {viewport, dark});
      await settled(page);
      await turns(page, shots ? server.recording.length : 5);
      server.paused = true;
      await fits(page);
      await page.locator("#evictions summary").first().press("Enter");
      await page.locator(".card summary").first().press("Enter");
      await turns(page, 1);
      await fits(page);
      await saneText(page);
      assert.deepEqual(page.complaints, []);
      if (shots) {
        await page.locator(".card summary").first().press("Enter");
        await page.evaluate(() => document.activeElement.blur());
        await page.evaluate(() => scrollTo(0, 0));
        await page.screenshot({path: join(shots, `page-${device}-${look}.png`)});
        await page.locator(".card summary").first().press("Enter");
      }
      assert.deepEqual(await accessibilityFaults(page), []);
    };
  }

async function run(name, test) {
  server.reset();
  try {
    await test();
    return {name, status: "passed", reason: ""};
  } catch (error) {
    return {name, status: "failed", reason: String(error.stack).split("\n").slice(0, 12).join("\n")};
  } finally {
    for (const context of browser.contexts()) await context.close();
  }
}

await server.listen();
browser = await launch();
const rows = [];
const wanted = process.argv[2] || "";
for (const [name, test] of Object.entries(tests))
  if (name.includes(wanted)) rows.push(await run(name, test));
await browser.close();
await server.close();
console.log(JSON.stringify(rows));
