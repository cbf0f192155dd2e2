import { roots } from "../stage/parts.js";

const NEAR = 8; // Pixels that a click may be beside a letter.
const LEFT_RIGHT = ["left", "right"];
const PAIR = '.st-key-fault-pair, .slide [data-role="picture"]';
const WITHOUT_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

const squeezed = (text) => text.replace(/\s+/g, "");
const isSeen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const holds = (box, { x, y }, spare = 0) => x >= box.left - spare && x <= box.right + spare && y >= box.top - spare && y <= box.bottom + spare;

function* textsIn(root) {
  const walker = (root.ownerDocument ?? root).createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) yield walker.currentNode;
}

/** The letter at a point of the page: its text node and its place there; null where there is none. */
function letterAt(page, point) {
  let [found, least] = [null, Infinity];
  const range = page.createRange();
  const texts = [...roots(page)].flatMap((root) => [...textsIn(root)]);
  for (const text of texts) {
    const element = text.parentElement;
    if (!element || !text.data.trim() || !holds(element.getBoundingClientRect(), point, NEAR) || !isSeen(element)) continue;
    for (let at = 0; at < text.data.length; at += 1) {
      range.setStart(text, at);
      range.setEnd(text, at + 1);
      const box = range.getBoundingClientRect();
      if (!box.width || !holds(box, point, NEAR)) continue;
      const far = Math.hypot((box.left + box.right) / 2 - point.x, (box.top + box.bottom) / 2 - point.y);
      if (far < least) [found, least] = [{ text, at }, far];
    }
  }
  return found;
}

/** Which letter of the sentence, without its spaces, stands at a point; -1 where it is none of it. */
function inSentence(page, point, sentence) {
  const found = letterAt(page, point);
  const wanted = squeezed(sentence);
  if (!found || !wanted) return -1;
  let line = found.text.parentElement;
  while (line && !squeezed(line.textContent).includes(wanted)) line = line.parentElement;
  if (!line) return -1;
  let before = "";
  for (const text of textsIn(line)) {
    if (text === found.text) break;
    before += text.data;
  }
  const [at, whole] = [squeezed(before + found.text.data.slice(0, found.at)).length, squeezed(line.textContent)];
  for (let from = whole.indexOf(wanted); from >= 0; from = whole.indexOf(wanted, from + 1))
    if (at >= from && at < from + wanted.length) return at - from;
  return -1;
}

/** Where words stand in a sentence as words of their own: from and to, in letters without spaces. */
function placesIn(words, sentence) {
  const found = [];
  for (let from = sentence.indexOf(words); from >= 0; from = sentence.indexOf(words, from + 1)) {
    const [before, after] = [sentence.slice(0, from), sentence.slice(from + words.length)];
    const alone = WITHOUT_SPACES.test(words) || (!/[\p{L}\p{N}]$/u.test(before) && !/^[\p{L}\p{N}]/u.test(after));
    const start = squeezed(before).length;
    if (alone) found.push([start, start + squeezed(words).length]);
  }
  return found;
}

/** The shortest of the choices that stands at a letter of the sentence, from 1; 0 where none does. */
function wordAt(at, { choices, sentence }) {
  const lengths = choices.map((words) => (placesIn(words, sentence).some(([from, to]) => at >= from && at < to) ? words.length : Infinity));
  const least = Math.min(...lengths);
  return least < Infinity ? lengths.indexOf(least) + 1 : 0;
}

/**
 * Which of a scene's choices was clicked in its picture, from 1; 0 where none was. `choices` are as the talk's file has
 * them: words of the `sentence`, wherever the whole of it stands, in words or in pieces; heads, as "2.5", among the tiles
 * of all heads; and the sides of a pair of pictures.
 */
export function choiceAt(event, { choices, sentence }) {
  const point = { x: event.clientX, y: event.clientY };
  const page = event.composedPath()[0].ownerDocument ?? event.view.document;
  const tile = event.composedPath()[0].closest?.(".tile");
  if (tile) {
    const { layer, head } = JSON.parse(tile.dataset.place);
    return choices.indexOf(`${layer + 1}.${head + 1}`) + 1;
  }
  const pair = choices.every((one) => LEFT_RIGHT.includes(one)) && page.querySelector(PAIR)?.getBoundingClientRect();
  if (pair) return holds(pair, point) ? choices.indexOf(LEFT_RIGHT[Number(point.x > (pair.left + pair.right) / 2)]) + 1 : 0;
  const at = inSentence(page, point, sentence);
  return at < 0 ? 0 : wordAt(at, { choices, sentence });
}
