// SPDX-License-Identifier: Apache-2.0
// Watches a daemon's own page until a pod is evicted: watch.mjs URL NAMESPACE/POD READY-FILE [SECONDS]. With SECONDS what the page
// takes of a core is measured first. Writes [{name, status, reason, cost}].
import assert from "node:assert/strict";
import {writeFileSync} from "node:fs";

import {accessibilityFaults, launch, open, settled} from "./browser.mjs";
import {measure} from "./meter.mjs";

const [url, pod, ready, seconds] = process.argv.slice(2);
// A guest short of memory may be late with an answer; that is not the page's fault.
const lateAnswer = /Failed to load resource.* (502|503) /;

async function watch(browser) {
  const page = await open(browser, url);
  await settled(page);
  if (seconds) row.cost = await measure(browser, page, Number(seconds));
  writeFileSync(ready, "");
  await page.locator("#announce", {hasText: pod}).waitFor({timeout: 150_000});
  const first = page.locator("#evictions > li").first();
  await first.locator("summary").first().press("Enter");
  await first.getByText("first of the pods that may be evicted").waitFor();
  assert.match(await first.innerText(), /memory\.available was .* below its hard threshold of 300Mi|kernel\.memAvailable was .* below its hard threshold of 50Mi/);
  await settled(page);
  const card = page.locator(".card", {has: page.getByRole("heading", {name: "memory.available", exact: true})});
  assert.ok((await card.locator("path.past").getAttribute("d")).split(/[ML]/).length > 5);
  await card.locator("svg .mark").waitFor({state: "attached"});
  assert.match(await page.locator("#facts").innerText(), /evicted\s*1/);
  assert.deepEqual(await accessibilityFaults(page), []);
  assert.deepEqual(page.complaints.filter((each) => !lateAnswer.test(each)), []);
}

const browser = await launch();
const row = {name: `${pod} is evicted`, status: "passed", reason: "", cost: null};
try {
  await watch(browser);
} catch (error) {
  Object.assign(row, {status: "failed", reason: String(error.stack)});
}
await browser.close();
console.log(JSON.stringify([row]));
