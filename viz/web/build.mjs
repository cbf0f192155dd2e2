/**
 * Builds what browsers get, from src/ and the scripts beside it in viz/, into dist/: `node build.mjs`.
 *
 * Each script of dist/ is one expression, the default export of its entry with all that it imports, so that it stands in
 * a module of Streamlit, in a page and in a notebook alike (bundle.py). What the sheets of all components begin with
 * is built once. messages.json has what each script says, for Python to put the reader's language before it.
 *
 * `--watch` builds again at every change; `--compare` writes nothing and fails where dist/ is not what the sources build.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import { findMessages } from "./messages.mjs";

const WEB = dirname(fileURLToPath(import.meta.url));
const SRC = join(WEB, "src");
const DIST = join(WEB, "dist");

/**
 * What is built beside the components, by its name in dist/: scripts of files, of the notebook and of every page's head,
 * and their sheets. Without an ending it is a script and a sheet.
 */
const MORE = {
  begin: "src/history/begin.js",
  film: "src/moving/film.js",
  ballot: "src/presenter/ballot.css",
  worker: "../engine/worker.js",
  page: "../export/browser/page",
  live: "../export/live/live",
  scene: "../export/live/scene.js",
  sentence_form: "../export/live/sentence.css",
  widget: "../notebook/widget",
};

/** The script and, where it draws anything, the sheet of each component; and shared.css, with which all sheets begin. */
const components = readdirSync(SRC).flatMap((name) => ["js", "css"].map((ending) => join(SRC, name, `${name}.${ending}`)));
const stem = (path) => basename(path).replace(/\.\w+$/, "");
const withEndings = (path) => (/\.\w+$/.test(path) ? [path] : [`${path}.js`, `${path}.css`]);
const entryPoints = [
  ...components.filter(existsSync).map((path) => ({ in: path, out: stem(path) })),
  ...Object.entries(MORE).flatMap(([out, path]) => withEndings(path).map((one) => ({ in: join(WEB, one), out }))),
];

const DEFAULT_EXPORT = /export\{([\w$]+) as default\};\s*$/;

/** A module as an expression. One without a default export is run for what it does. */
function asExpression(name, code) {
  const text = code.trimEnd().replace(DEFAULT_EXPORT, "return $1");
  if (/\b(import|export)\b *[{*"]/.test(text)) throw new Error(`${name} has imports, or exports beside its default.`);
  if (/<\/script/i.test(text)) throw new Error(`${name} holds </script and cannot stand in a page.`);
  return `(()=>{${text}})()\n`;
}

/** What stands in dist/ after a build, by file name. */
function files({ outputFiles, metafile }) {
  const found = {};
  const messages = {};
  for (const { path, text } of outputFiles) {
    const name = basename(path);
    found[name] = name.endsWith(".js") ? asExpression(name, text) : text;
  }
  for (const [path, { inputs }] of Object.entries(metafile.outputs)) {
    const name = basename(path);
    const said = name.endsWith(".js") ? findMessages(Object.keys(inputs).map((one) => resolve(WEB, one))) : [];
    if (said.length) messages[stem(name)] = said;
  }
  const lines = Object.keys(messages).sort().map((name) => `${JSON.stringify(name)}: ${JSON.stringify(messages[name])}`);
  found["messages.json"] = `{\n${lines.join(",\n")}\n}\n`;
  return found;
}

function write(found) {
  mkdirSync(DIST, { recursive: true });
  for (const name of readdirSync(DIST)) if (!(name in found)) rmSync(join(DIST, name));
  for (const [name, text] of Object.entries(found)) {
    const path = join(DIST, name);
    if (!existsSync(path) || readFileSync(path, "utf8") !== text) writeFileSync(path, text);
  }
  const size = Object.values(found).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  console.log(`dist/: ${Object.keys(found).length} files, ${(size / 1000).toFixed(1)} kB`);
}

/** The names of files that are missing in dist/, too many, or not what the sources build. */
function differing(found) {
  const there = existsSync(DIST) ? readdirSync(DIST) : [];
  const names = new Set([...there, ...Object.keys(found)]);
  return [...names].filter((name) => !there.includes(name) || readFileSync(join(DIST, name), "utf8") !== found[name]);
}

const options = {
  absWorkingDir: WEB,
  entryPoints,
  outdir: DIST,
  bundle: true,
  write: false,
  metafile: true,
  format: "esm",
  minify: true,
  charset: "utf8",
  legalComments: "inline",
  logLevel: "warning",
};

if (process.argv.includes("--watch")) {
  const again = { name: "write", setup: (build) => build.onEnd((result) => result.errors.length || write(files(result))) };
  const context = await esbuild.context({ ...options, plugins: [again] });
  await context.watch();
} else if (process.argv.includes("--compare")) {
  const names = differing(files(await esbuild.build(options)));
  if (names.length) {
    console.error(`dist/ is not what the sources build: run make web. Differing: ${names.join(", ")}`);
    process.exit(1);
  }
} else {
  write(files(await esbuild.build(options)));
}
