/**
 * Which statements of viz/ the tests run, those of Vitest and those of pages in a browser: `node coverage.mjs FOLDER`.
 *
 * FOLDER has what `make coverage` leaves there: `vitest/coverage-final.json`, the scripts that the browser ran with their
 * source maps in `dist/` (build.mjs --covered), and in `browser/` what V8 counted in them (tests/browser/coverage.py).
 * Prints the share of each file, the least first, and of all.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { mergeProcessCovs } from "@bcoe/v8-coverage";
import convert from "ast-v8-to-istanbul";
import { parseAst } from "vite";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const VIZ = join(ROOT, "viz");
/** Where a bare page finds the sources themselves (tests/browser/modules.py). */
const SOURCES = "http://scripts.test/";
const MODULE = "export default";

const folder = resolve(process.argv[2]);
const read = (...path) => readFileSync(join(folder, ...path), "utf8");

/** The scripts that were built, each with the code by which it is found wherever a page holds it. */
const built = readdirSync(join(folder, "dist"))
  .filter((name) => name.endsWith(".js"))
  .map((name) => {
    const code = read("dist", name);
    const start = code.startsWith(MODULE) ? MODULE.length : 0;
    return { path: join(folder, "dist", name), code, start, inside: code.slice(start).trimEnd(), map: JSON.parse(read("dist", `${name}.map`)) };
  });

/** A script that a page ran as the scripts of ours in it, each with where its code begins there. */
function scriptsIn(url, text) {
  if (url.startsWith(SOURCES)) {
    const path = join(VIZ, url.slice(SOURCES.length));
    return [{ path, code: text, start: 0, inside: text, at: 0 }];
  }
  return built.map((one) => ({ ...one, at: text.indexOf(one.inside) })).filter(({ at }) => at >= 0);
}

/** What was counted of the functions of a page's script, of one of ours alone and as it counts its characters. */
function within(functions, { at, start, inside }) {
  const held = (offset) => Math.min(Math.max(offset - at, 0), inside.length) + start;
  const touches = ({ startOffset, endOffset }) => startOffset < at + inside.length && endOffset > at;
  return functions
    .filter(({ ranges }) => touches(ranges[0]))
    .map((one) => ({ ...one, ranges: one.ranges.filter(touches).map((range) => ({ ...range, startOffset: held(range.startOffset), endOffset: held(range.endOffset) })) }));
}

/** Of every script of ours all that pages counted in it, added up. */
function countedInPages() {
  const [scripts, counted] = [new Map(), new Map()];
  for (const name of readdirSync(join(folder, "browser")).filter((one) => one.endsWith(".json"))) {
    for (const { url, text, functions } of JSON.parse(read("browser", name))) {
      if (!scripts.has(url + text)) scripts.set(url + text, scriptsIn(url, read("browser", `${text}.js`)));
      for (const script of scripts.get(url + text)) {
        const found = counted.get(script.path) ?? { script, covs: [] };
        counted.set(script.path, found);
        found.covs.push({ result: [{ scriptId: "0", url: script.path, functions: within(functions, script) }] });
      }
    }
  }
  return [...counted.values()].map(({ script, covs }) => ({ script, functions: mergeProcessCovs(covs).result[0].functions }));
}

const placeOf = ({ start }) => `${start.line}:${start.column}`;

/** Where a statement begins that pages ran, by the path of its file. */
async function placesRunInPages() {
  const run = new Map();
  for (const { script, functions } of countedInPages()) {
    const coverage = { url: `file://${script.path}`, functions };
    const files = await convert({ ast: parseAst(script.code), code: script.code, sourceMap: script.map, coverage });
    for (const [path, { statementMap, s }] of Object.entries(files)) {
      const places = run.get(path) ?? new Set();
      run.set(path, places);
      for (const [at, count] of Object.entries(s)) if (count) places.add(placeOf(statementMap[at]));
    }
  }
  return run;
}

const inPages = await placesRunInPages();
const listed = Object.entries(JSON.parse(read("vitest", "coverage-final.json"))).filter(([path]) => path.startsWith(VIZ));
const rows = listed.map(([path, { statementMap, s }]) => {
  const places = inPages.get(path) ?? new Set();
  const run = Object.keys(s).filter((at) => s[at] || places.has(placeOf(statementMap[at])));
  const lines = Object.keys(s).filter((at) => !run.includes(at)).map((at) => statementMap[at].start.line);
  return { path: relative(VIZ, path), all: Object.keys(s).length, run: run.length, vitest: Object.values(s).filter(Boolean).length, lines };
});
const percent = (run, all) => `${((100 * run) / Math.max(all, 1)).toFixed(1)}%`.padStart(6);
const sum = (name) => rows.reduce((before, row) => before + row[name], 0);
rows.sort((one, other) => one.run / one.all - other.run / other.all || other.all - one.all);
const told = process.argv.includes("--lines");
for (const { path, all, run, lines } of rows) console.log(`${percent(run, all)} ${`${run}/${all}`.padStart(8)}  ${path}${told && lines.length ? `  ${[...new Set(lines)].join(" ")}` : ""}`);
console.log(`${percent(sum("run"), sum("all"))} of ${sum("all")} statements; by Vitest alone ${percent(sum("vitest"), sum("all")).trim()}`);
