/** The messages of scripts: what `say` and `sayMany` are given as literals. */
import { readFileSync } from "node:fs";
import ts from "typescript";

const LITERALS = { say: 1, sayMany: 2 };

/** The messages of these files, each once: `["…"]`, or `["… head", "… heads"]` where a number changes the words. */
export function findMessages(paths) {
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
