"""What people noticed first, where several reports share it."""

from __future__ import annotations

from ...language.say import to_say

ALONE = to_say("works alone but not in a batch")
CACHED = to_say("kv cache")

COPIES = (to_say("the model copies the next token"), to_say("the training loss is too good to be true"))
QUIET = (
    to_say("nothing is reported, the quality is merely low"),
    to_say("long texts are understood worse than short ones"),
)
PACKED = (to_say("text from another document appears"), to_say("packing"))
OLD_TEXT = (CACHED, to_say("old text shows up in new answers"))
OTHER_TEXT = (CACHED, to_say("with a cache it writes something else"))
BATCH = (ALONE, to_say("the translation changes with its batch or the padding"))
LEFT_PADDING = (ALONE, to_say("left padding changes the answer"))
NAN = (to_say("the loss is NaN"), to_say("loss goes to NaN"))
HALF = (
    to_say("value cannot be converted to type at::Half without overflow"),
    to_say("an error only in half precision"),
)
