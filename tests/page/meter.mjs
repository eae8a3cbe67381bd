// SPDX-License-Identifier: Apache-2.0
// What a page takes of the machine of who looks at it.

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

// {seconds, page, browser}: CPU time as a share of one core, in per cent, of the page's own thread and of all of the browser's processes.
export async function measure(browser, page, seconds) {
  const meter = await Meter.of(browser, page), before = await meter.read();
  await page.waitForTimeout(1000 * seconds);
  const after = await meter.read(), took = after.at - before.at;
  const percent = (what) => Number((100 * (after[what] - before[what]) / took).toFixed(2));
  return {seconds: Number(took.toFixed(1)), page: percent("page"), browser: percent("browser")};
}
