"""What looking costs: translating with every attention weight captured, against the same translation unobserved."""

from __future__ import annotations

from attenscope.network.attention import force_attention_path
from attenscope.translate import Translator
from bench.timing import Row, side_by_side

CHECKPOINT = "everyday-en-de"
SENTENCE = "The old man sat on the bench in the park and fed the birds with the bread that was left over."
REPETITIONS = 60
GOAL = 1.05


def measure() -> list[Row]:
    translator = Translator.load(CHECKPOINT, device="cpu")
    with force_attention_path("explicit"):
        tokens = len(translator.translate(SENTENCE).steps)
        looking, alone = side_by_side(
            lambda: translator.translate(SENTENCE),
            lambda: translator.translate(SENTENCE, capture=False),
            REPETITIONS,
            warm_up=3,
        )
    ratio = looking / alone
    return [
        Row(
            f"capture: time to translate into {tokens} tokens, with capture / without",
            f"{looking * 1e3:.1f} ms",
            f"{alone * 1e3:.1f} ms",
            ratio,
            f"at most {GOAL}",
            ratio <= GOAL,
        )
    ]
