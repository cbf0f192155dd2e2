import { ballot, guessesSaid } from "../../web/src/talk/ballot.js";
import { choiceAt } from "../../web/src/talk/chosen.js";
import { guessesOf } from "../../web/src/talk/guesses.js";

/**
 * What the audience guesses at the slides of a deck, by keys, by clicks on the choices and on the parts in the picture:
 * the deck gets what counts, `said()` is what is said of it, `show()` shows it.
 */
export function guessingAt(deck, file, parts) {
  const { slides, title } = file.header;
  const guesses = guessesOf(title, slides);
  const poll = ballot(parts.choices, (choice) => deck.guess(choice));
  deck.asks = () => deck.covered && slides[deck.at].guess.length > 0;
  deck.guess = (choice) => (deck.asks() && guesses.add(deck.at, choice), deck.look());
  /** A click on a part of the picture that is a choice counts it, and does nothing else. */
  deck.click = (event) => {
    const choice = deck.asks() ? choiceAt(event, slides[deck.at]) : 0;
    if (!choice) return;
    event.preventDefault();
    event.stopPropagation();
    deck.guess(choice);
  };
  deck.takeBack = () => (deck.asks() && guesses.takeBack(deck.at), deck.look());
  deck.saveGuesses = guesses.save;
  deck.clearGuesses = () => (guesses.clear(), deck.look());
  return {
    said: () => (slides[deck.at].guess.length ? guessesSaid(guesses.total(deck.at)) : ""),
    show() {
      poll(slides[deck.at].guess, guesses.counts(deck.at), deck.asks());
      parts.ofGuesses?.forEach((one) => (one.hidden = !guesses.any()));
    },
  };
}
