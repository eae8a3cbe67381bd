// SPDX-License-Identifier: Apache-2.0
// Reads [{where, schema, value}] and writes [{where, wrong: […]}]: values against the schemas Kubernetes publishes.
// The validators pass over keys they do not know, so each value is watched while it is validated: a key that was not
// read is not in the schema.
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(`${process.env.KUBE_MODULES}/`);
const folder = (name) => require.resolve(`${name}/package.json`).replace(/package\.json$/, '_schemas');
const roots = [folder('kubernetes-models'), folder('@kubernetes-models/apimachinery'),
               folder('@kubernetes-models/prometheus-operator')];

function watched(value, asked) {
  if (value === null || typeof value !== 'object') return value;
  const keys = new Set();
  const inner = {};
  asked.set(value, { keys, all: Array.isArray(value) });
  return new Proxy(value, {
    get(target, key) {
      keys.add(key);
      if (!Object.hasOwn(target, key)) return target[key];
      return (inner[key] ??= watched(target[key], asked));
    },
    ownKeys(target) {
      asked.get(value).all = true; // a map: any key will do
      return Reflect.ownKeys(target);
    },
  });
}

function unknown(value, asked, where, found) {
  if (value === null || typeof value !== 'object' || !asked.has(value)) return found;
  const { keys, all } = asked.get(value);
  for (const key of Object.keys(value)) {
    if (!all && !keys.has(key)) found.push(`${where}/${key}: not in the schema`);
    else unknown(value[key], asked, `${where}/${key}`, found);
  }
  return found;
}

async function wrongs({ schema, value }) {
  const file = roots.map((root) => `${root}/${schema}.js`).find((path) => existsSync(path));
  if (!file) return [`no schema ${schema} is published`];
  const { validate } = await import(pathToFileURL(file));
  const asked = new Map();
  const good = validate(watched(value, asked));
  const errors = good ? [] : validate.errors.map((error) => `${error.instancePath}: ${error.keyword} ${JSON.stringify(error.params)}`);
  return [...errors, ...unknown(value, asked, '', [])];
}

const rows = [];
for (const each of JSON.parse(readFileSync(0, 'utf8'))) rows.push({ where: each.where, wrong: await wrongs(each) });
process.stdout.write(JSON.stringify(rows));
