/**
 * Builds what browsers get, from src/ and the scripts beside it in viz/, into dist/: `node build.mjs`.
 *
 * A script of dist/ is a module that imports nothing: a function of the scripts that it builds on, which returns the
 * default export of its entry, or, of a library, all its exports by name. So it is fetched by Streamlit's page and stands
 * in a file and in a notebook alike (bundle.py). A library is a folder of src/ whose modules stand in that one script,
 * however many import them. What the sheets of all components begin with is built once. messages.json has what each
 * script says, for Python to put the reader's language before it.
 *
 * `--watch` builds again at every change; `--compare` writes nothing and fails where dist/ is not what the sources build.
 * `--covered FOLDER` builds into another folder, for coverage.mjs: the same scripts, not minified, with their source maps.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import esbuild from "esbuild";
import ts from "typescript";

const WEB = dirname(fileURLToPath(import.meta.url));
const SRC = join(WEB, "src");
/** Where a build for coverage goes; undefined for any other. */
const COVERED = process.argv.includes("--covered") ? resolve(process.argv[process.argv.indexOf("--covered") + 1]) : undefined;
const DIST = COVERED ?? join(WEB, "dist");

/** Folders of src/ that are libraries. */
const LIBRARIES = ["shared", "stage", "slide", "pictures", "talk", "studio"];

/**
 * What is built beside the components, by its name in dist/: scripts of files and of the notebook, and their sheets.
 * Without an ending it is a script and a sheet.
 */
const MORE = {
  ballot: "src/talk/ballot.css",
  begin: "src/shell/begin.css",
  welcome: "src/shell/welcome.css",
  page: "../export/browser/page",
  live: "../export/live/live",
  sentence_form: "../export/live/sentence.css",
  widget: "../notebook/widget",
};

/** Folders whose changes `--watch` builds. */
const WATCHED = ["src", "../engine", "../export", "../notebook"];

/** Scripts that stand alone: that of every page's head, that of its welcome, of a film, and of a worker. Each is one expression. */
const ALONE = { begin: "src/shell/history.js", welcome: "src/shell/welcome.js", film: "src/moving/film.js", worker: "../engine/worker.js" };

/** The script and, where it draws anything, the sheet of each component; and shared.css, with which all sheets begin. */
const components = readdirSync(SRC).flatMap((name) => ["js", "css"].map((ending) => join(SRC, name, `${name}.${ending}`)));
const stem = (path) => basename(path).replace(/\.\w+$/, "");
const withEndings = (path) => (/\.\w+$/.test(path) ? [path] : [`${path}.js`, `${path}.css`]);
const entriesOf = (paths) => Object.entries(paths).flatMap(([out, path]) => withEndings(path).map((one) => ({ in: join(WEB, one), out })));
const isOfLibrary = (path) => path.endsWith(".js") && LIBRARIES.includes(basename(dirname(path)));
const entryPoints = [
  ...LIBRARIES.map((name) => ({ in: `library:${name}`, out: name })),
  ...components.filter((path) => existsSync(path) && !isOfLibrary(path)).map((path) => ({ in: path, out: stem(path) })),
  ...entriesOf(MORE),
].map(({ in: path, out }) => ({ in: isAbsolute(path) && path.endsWith(".js") ? `entry:${path}` : path, out }));

const folders = new Map(LIBRARIES.map((name) => [join(SRC, name), name]));

const modulesOf = (library) => readdirSync(join(SRC, library)).filter((name) => name.endsWith(".js"));
/** What the script of a library exports: all that its modules do. */
const wholly = Object.fromEntries(LIBRARIES.map((one) => [one, modulesOf(one).map((name) => `export * from "./${name}";`).join("\n")]));

/**
 * Leaves libraries out of other scripts. `taken` holds the names that a script takes of each: they stand in a single
 * import then, however many of its modules ask for them, in a module between, whose name is that of the library. `given`
 * is what the script of each library exports.
 */
const libraries = (taken, given = wholly) => ({
  name: "libraries",
  setup(build) {
    build.onResolve({ filter: /^entry:/ }, ({ path }) => ({ path: path.replace("entry:", ""), namespace: "entry" }));
    build.onLoad({ filter: /.*/, namespace: "entry" }, ({ path }) => ({ contents: `export { default } from ${JSON.stringify(path)};`, resolveDir: dirname(path) }));
    build.onResolve({ filter: /^library:/ }, ({ path }) => ({ path: path.replace("library:", ""), namespace: "library" }));
    build.onLoad({ filter: /.*/, namespace: "library" }, ({ path }) => ({ contents: given[path], resolveDir: join(SRC, path) }));
    build.onResolve({ filter: /^\.{1,2}\/.*\.js$/ }, ({ path, resolveDir }) => {
      const name = folders.get(dirname(resolve(resolveDir, path)));
      if (!name || resolveDir === join(SRC, name)) return undefined;
      return taken ? { path: name, namespace: "between" } : { path: name, external: true };
    });
    build.onLoad({ filter: /.*/, namespace: "between" }, ({ path }) => ({ contents: `export {${[...taken[path]]}} from "${path}";` }));
    build.onResolve({ filter: /.*/, namespace: "between" }, ({ path }) => ({ path, external: true }));
  },
});

const IMPORT = new RegExp(`import(?:\\s*\\{([^}]*)\\}\\s*from)?\\s*"(${LIBRARIES.join("|")})";`, "g");
const EXPORT = /export\s*\{([^}]*)\};?\s*$/;
const listed = (names) => names.split(",").map((one) => one.trim()).filter(Boolean);
/** The short names under which what is taken of each library stands in its script, by the long ones. */
const short = Object.fromEntries(LIBRARIES.map((name) => [name, new Map()]));
const nameShortly = (library, names) => names.sort().forEach((name, at) => short[library].set(name, `_${at.toString(36)}`));
/** `a as b,c`, imported from a library or exported by it, as the fields of an object. */
const fields = (library, names) => listed(names).map((one) => [one.split(" as ")[0], one.split(" as ").at(-1)]).map(([name, own]) => `${short[library].get(name)}:${own}`).join();
const exported = (library, names) => listed(names).map((one) => one.split(" as ")).map(([own, name]) => `${short[library].get(name ?? own)}:${own}`).join();

/**
 * Where a source map is to find the code of a module it begins in a line of its own; and in a scope of its own, as there
 * names are as long as the sources have them, and one may be that of a library.
 */
const [START, END] = COVERED ? ["return (() => {\n", "\n})()"] : ["", ""];
const shifted = (map) => JSON.stringify({ ...JSON.parse(map), mappings: `;${JSON.parse(map).mappings}` });

/** A module as a function of the scripts it builds on. */
function asFunction(name, code) {
  const uses = code.includes("MESSAGES.") ? ["MESSAGES"] : [];
  let bound = "";
  const text = code.trimEnd().replace(IMPORT, (all, names, library) => {
    uses.push(library);
    if (names) bound += `let{${fields(library, names)}}=${library};`;
    return COVERED ? all.replace(/./g, " ") : ""; // What follows stays where the source map has it.
  });
  const [all, names = ""] = text.match(EXPORT) ?? [""];
  const body = check(name, text.slice(0, text.length - all.length));
  const given = LIBRARIES.includes(name) ? `{${exported(name, names)}}` : names.replace(" as default", "").trim();
  return `export default({${[...new Set(uses)].join()}})=>{${bound}${START}${body}return ${given}${END}}\n`;
}

/** A module as an expression that is run for what it does, or has the value of its default export. */
function asExpression(name, code) {
  const text = code.trimEnd().replace(/export\s*\{\s*([\w$]+) as default\s*\};$/, "return $1");
  return `(()=>{${START}${check(name, text)}${END}})()\n`;
}

function check(name, text) {
  if (/\b(import|export)\b *[{*"]/.test(text)) throw new Error(`${name} has imports, or exports beside its default.`);
  if (/<\/script/i.test(text)) throw new Error(`${name} holds </script and cannot stand in a page.`);
  return text;
}

const LITERALS = { say: 1, sayMany: 2 };

/**
 * The messages of these scripts, each once, as `say` and `sayMany` are given them in literals: `["…"]`, or
 * `["… head", "… heads"]` where a number changes the words.
 */
function findMessages(paths) {
  const found = new Map();
  for (const path of paths.filter((one) => one.endsWith(".js"))) {
    for (const message of messagesOf(path)) found.set(JSON.stringify(message), message);
  }
  return [...found.keys()].sort().map((key) => found.get(key));
}

function messagesOf(path) {
  const found = [];
  const visit = (node) => {
    const count = ts.isCallExpression(node) && ts.isIdentifier(node.expression) ? LITERALS[node.expression.text] : 0;
    const given = count ? node.arguments.slice(0, count) : [];
    if (given.length && given.every(ts.isStringLiteral)) found.push(given.map((one) => one.text));
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest));
  return found;
}

/** What stands in dist/ after a build, by file name. */
function files(results) {
  const found = {};
  const messages = {};
  for (const { outputFiles, metafile } of results) {
    for (const { path, text } of outputFiles) {
      const name = basename(path);
      const form = stem(name) in ALONE ? asExpression : asFunction;
      found[name] = name.endsWith(".js") ? form(stem(name), text) : name.endsWith(".js.map") ? shifted(text) : text;
    }
    for (const [path, { inputs }] of Object.entries(metafile.outputs)) {
      const name = basename(path);
      const own = Object.keys(inputs).filter((one) => !/^(entry|library|between):/.test(one)).map((one) => resolve(WEB, one));
      const said = name.endsWith(".js") ? findMessages(own) : [];
      if (said.length) messages[stem(name)] = said;
    }
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
  outdir: DIST,
  bundle: true,
  write: false,
  metafile: true,
  format: "esm",
  minify: !COVERED,
  sourcemap: COVERED && "external",
  charset: "utf8",
  legalComments: "inline",
  logLevel: "warning",
};

/** Leaves the sheet of another script where a sheet imports it: bundle.py puts it there. */
const sheets = {
  name: "sheets",
  setup(build) {
    const built = new Map(entryPoints.filter(({ in: path }) => path.endsWith(".css")).map(({ in: path, out }) => [path, out]));
    build.onResolve({ filter: /\.css$/ }, ({ path, kind, resolveDir }) => {
      const name = kind === "import-rule" && built.get(resolve(resolveDir, path));
      return name ? { path: name, external: true } : undefined;
    });
  },
};

/** What a script takes of each library, by name. */
async function takenBy(entry) {
  const { outputFiles } = await esbuild.build({ ...options, minify: true, sourcemap: false, entryPoints: [entry], plugins: [libraries()] });
  const taken = {};
  for (const [, names = "", library] of outputFiles[0].text.matchAll(IMPORT)) {
    taken[library] ??= new Set();
    for (const one of listed(names)) taken[library].add(one.split(" as ")[0]);
  }
  return taken;
}

/** Which module of a library exports a name; none may stand in two of them. */
async function exportsOf(library) {
  const entryPoints = modulesOf(library).map((name) => join(SRC, library, name));
  const { metafile } = await esbuild.build({ ...options, bundle: false, entryPoints });
  const found = {};
  for (const { entryPoint, exports } of Object.values(metafile.outputs)) {
    for (const name of exports) {
      if (name in found) throw new Error(`Two modules of ${library} export ${name}.`);
      found[name] = basename(entryPoint);
    }
  }
  return found;
}

/** What the script of a library exports: what is taken of it. */
async function exportTaken(library, all) {
  const exported = await exportsOf(library);
  const names = [...new Set(all.flatMap((taken) => [...(taken[library] ?? [])]))];
  nameShortly(library, names);
  return names.map((name) => {
    if (!exported[name]) throw new Error(`${library} does not export ${name}.`);
    return `export { ${name} } from "./${exported[name]}";`;
  }).join("\n");
}

async function build() {
  const all = await Promise.all(entryPoints.map((entry) => (entry.in.endsWith(".css") ? {} : takenBy(entry))));
  const given = Object.fromEntries(await Promise.all(LIBRARIES.map(async (name) => [name, await exportTaken(name, all)])));
  const linked = entryPoints.map((entry, at) => esbuild.build({ ...options, entryPoints: [entry], plugins: [sheets, libraries(all[at], given)] }));
  return files(await Promise.all([...linked, esbuild.build({ ...options, entryPoints: entriesOf(ALONE) })]));
}

if (process.argv.includes("--watch")) {
  let building = Promise.resolve();
  const again = () => (building = building.then(async () => write(await build())).catch((error) => console.error(error.message)));
  for (const folder of WATCHED) watch(join(WEB, folder), { recursive: true }, again);
  await again();
} else if (process.argv.includes("--compare")) {
  const names = differing(await build());
  if (names.length) {
    console.error(`dist/ is not what the sources build: run make web. Differing: ${names.join(", ")}`);
    process.exit(1);
  }
} else {
  write(await build());
}
