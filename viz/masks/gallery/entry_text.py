"""What is said of an entry of the gallery, and the symptoms that several entries share."""

from __future__ import annotations

from dataclasses import dataclass

from model.language.say import say, to_say


@dataclass(frozen=True)
class EntryText:
    """What is said of one entry, in English until it is `said`."""

    title: str
    symptoms: tuple[str, ...]
    """What a person notices first; searched beside the rest."""
    how: str
    met: str
    """Where it was seen, and whose notes say so."""
    fix: str = ""
    """A line to copy, where the catalogue's own does not fit."""

    def said(self) -> EntryText:
        """Return the same in the current language."""
        return EntryText(say(self.title), tuple(map(say, self.symptoms)), say(self.how), say(self.met), self.fix)


NAN = to_say("the loss is NaN")
BATCH = to_say("the translation changes with its batch or the padding")
COPIES = to_say("the model copies the next token")
GOOD_LOSS = to_say("the training loss is too good to be true")
BAD = to_say("the translation is poor though training went well")
SUMS = to_say("rows do not sum to 1")
CACHE = to_say("with a cache it writes something else")
OBSERVER = to_say("it works until somebody looks")
QUIET = to_say("nothing is reported, the quality is merely low")
