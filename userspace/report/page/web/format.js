// SPDX-License-Identifier: Apache-2.0
// Amounts and durations in the format of headroomctl.

function twoDigits(value, unit) {
  const text = value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(0);
  return text + unit;
}

function humanBytes(count) {
  const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
  let size = Math.abs(count), unit = 0;
  while (size >= 1024 && unit + 1 < units.length) {
    size /= 1024;
    ++unit;
  }
  return (count < 0 ? "−" : "") + twoDigits(size, units[unit]);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const bytes = (count) => isNumber(count) ? humanBytes(count) : "–";
const number = (count) => isNumber(count) ? String(count).replace("-", "−") : "–";

const isShareOfTime = (signal) => signal === "memory.pressure" || signal === "cpu.pressure";

// The amount of a signal: bytes, a number of inodes or tasks, or millionths of the time.
function amount(signal, count) {
  if (isShareOfTime(signal)) return isNumber(count) ? `${(count / 1e4).toFixed(1)}%` : "–";
  return /inodesFree|^pid\./.test(signal) ? number(count) : bytes(count);
}
// The usage of a pod by which a signal ranks.
const used = (signal, count) => signal === "memory.pressure" ? bytes(count) : amount(signal, count);

function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds < 0) return "−" + duration(-seconds);
  if (seconds === 0) return "0s";
  if (seconds < 1e-3) return twoDigits(seconds * 1e6, "µs");
  if (seconds < 1) return twoDigits(seconds * 1e3, "ms");
  if (seconds < 60) return twoDigits(seconds, "s");
  const pair = (large, unit, small, smaller) => large + unit + (small ? small + smaller : "");
  const whole = Math.floor(seconds);
  if (whole < 3600) return pair(Math.floor(whole / 60), "m", whole % 60, "s");
  if (whole < 86400) return pair(Math.floor(whole / 3600), "h", Math.floor(whole % 3600 / 60), "m");
  return pair(Math.floor(whole / 86400), "d", Math.floor(whole % 86400 / 3600), "h");
}

const milliseconds = (count) => isNumber(count) ? duration(count / 1e3) : "–";
const nanoseconds = (count) => isNumber(count) ? duration(count / 1e9) : "–";
// Since boot; null: unknown.
const secondsOf = (ns) => isNumber(ns) ? ns / 1e9 : null;
const many = (count, one, more = one + "s") => `${count} ${count === 1 ? one : more}`;
// "default/web"; a pod without a manifest has no name, only a uid.
const podName = (pod) => pod && pod.name ? `${pod.namespace || "default"}/${pod.name}` : String(pod && pod.uid || "unknown");
const clock = (date) => date.toTimeString().slice(0, 8);
const list = (value) => Array.isArray(value) ? value : [];

const podCount = (status) => list(status.qos_classes).reduce((sum, each) => sum + each.pods, 0);
const table = (value) => value && typeof value === "object" && !Array.isArray(value) ? value : {};
