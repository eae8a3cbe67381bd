// SPDX-License-Identifier: Apache-2.0
// Browser: a headless Chromium that notes whatever goes wrong on the pages it opens.
import {createRequire} from "node:module";
import {readFileSync} from "node:fs";

const require = createRequire(`${process.env.PAGE_MODULES}/`);
const {chromium} = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const kDesktop = {width: 1100, height: 1000}, kPhone = {width: 360, height: 740};

export async function launch() {
  return chromium.launch({executablePath: process.env.PAGE_BROWSER, args: ["--no-sandbox", "--disable-gpu"]});
}

// A page at `url`, once it has shown a first reading (or `ready` holds); `page.complaints` are what it said on the console
// and what it asked of others.
export async function open(browser, url, {viewport = kDesktop, dark = false, csp = true, before} = {}) {
  const context = await browser.newContext({viewport, colorScheme: dark ? "dark" : "light", bypassCSP: !csp,
    locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce"});
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) page.complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => page.complaints.push(`thrown: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) page.complaints.push(`asked: ${request.url()}`);
  });
  if (before) await page.addInitScript(before);
  await page.goto(url);
  return page;
}

export const settled = (page) => page.locator("#link", {hasText: /^Live$/}).waitFor();

// What axe finds wrong, a line each.
export async function accessibilityFaults(page) {
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => globalThis.axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}));
  return violations.map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
}
