"""The figure of a Transformer: its two stacks, the three kinds of attention, and the sizes of one model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import plotly.graph_objects as go

from .figure_style import Palette, base_layout, escape_markup, format_number, say

if TYPE_CHECKING:
    from attenscope.network.config import TransformerConfig

ARCHITECTURE_HEIGHT = 430
ENCODER, DECODER = 0.0, 6.0
"""Where the stacks begin, in units of the picture; each is WIDE units wide."""
WIDE = 4.2
BLOCK = 0.86
"""Height of a block; the next one begins a unit higher."""


class Block(NamedTuple):
    """One box of the picture."""

    left: float
    bottom: float
    name: str
    size: str
    is_attention: bool = False


def list_diagram_blocks(config: TransformerConfig) -> list[Block]:
    """The boxes from bottom to top, those of the encoder first."""
    heads = say("{count} heads of {width}", count=config.heads, width=config.d_model // config.heads)
    forward = say("{width} → {hidden} → {width}", width=config.d_model, hidden=format_number(config.feed_forward, ","))
    sources, targets = (
        say("{count} pieces × {width}", count=format_number(count, ","), width=config.d_model)
        for count in (config.vocab_size, config.target_vocab_size)
    )
    encoder = [
        Block(ENCODER, 0, say("embedding and position"), sources),
        Block(ENCODER, 1.5, say("self-attention"), heads, True),
        Block(ENCODER, 2.5, say("feed-forward"), forward),
    ]
    decoder = [
        Block(DECODER, 0, say("embedding and position"), targets),
        Block(DECODER, 1.5, say("masked self-attention"), heads, True),
        Block(DECODER, 2.5, say("cross-attention"), heads, True),
        Block(DECODER, 3.5, say("feed-forward"), forward),
        Block(DECODER, 5.0, say("choice of the next piece"), targets),
    ]
    return encoder + decoder


def plot_architecture(config: TransformerConfig, palette: Palette) -> go.Figure:
    """Encoder and decoder side by side, the sentence entering below, the next piece leaving above."""
    figure = go.Figure(layout=_architecture_layout(palette))
    stacks = [(ENCODER, 1.5, 3.5, config.encoder_layers), (DECODER, 1.5, 4.5, config.decoder_layers)]
    for left, bottom, top, layers in stacks:
        frame = {"color": palette.soft, "width": 1, "dash": "dot"}
        figure.add_shape(type="rect", x0=left - 0.2, x1=left + WIDE + 0.2, y0=bottom - 0.17, y1=top + 0.03, line=frame)
        _add_text(figure, left + WIDE + 0.3, (bottom + top) / 2, f"× {layers}", palette.ink, 15, xanchor="left")
    for block in list_diagram_blocks(config):
        _add_block(figure, block, palette)
    middle = WIDE / 2
    ways = [
        ((middle, -0.45), (middle, 0)),
        ((middle, BLOCK), (middle, 1.33)),
        ((ENCODER + WIDE + 0.2, 3.3), (DECODER - 0.04, 2.93)),
        ((DECODER + middle, -0.45), (DECODER + middle, 0)),
        ((DECODER + middle, BLOCK), (DECODER + middle, 1.33)),
        ((DECODER + middle, 4.53), (DECODER + middle, 5.0)),
        ((DECODER + middle, 5.86), (DECODER + middle, 6.25)),
    ]
    _add_text(figure, DECODER + middle, -0.68, say("what is written so far"), palette.soft)
    _add_text(figure, DECODER + middle, 6.48, say("the next piece"), palette.accent, 14)
    _add_text(figure, middle, -0.68, say("the sentence"), palette.soft)
    _add_text(figure, middle, 3.85, say("encoder: reads the sentence"), palette.ink, 14)
    _add_text(figure, DECODER - 0.3, 5.43, say("decoder: writes"), palette.ink, 14, xanchor="right")
    for (x0, y0), (x1, y1) in ways:
        figure.add_annotation(
            **{"x": x1, "y": y1, "ax": x0, "ay": y0, "axref": "x", "ayref": "y", "text": ""},
            **{"arrowcolor": palette.soft, "arrowwidth": 1.5, "arrowhead": 2, "arrowsize": 0.9},
        )
    return figure


def _add_block(figure: go.Figure, block: Block, palette: Palette) -> None:
    line = {"color": palette.accent if block.is_attention else palette.soft, "width": 2 if block.is_attention else 1}
    top = block.bottom + BLOCK
    figure.add_shape(
        **{"type": "rect", "x0": block.left, "x1": block.left + WIDE, "y0": block.bottom, "y1": top, "line": line}
    )
    ink = palette.accent if block.is_attention else palette.ink
    _add_text(figure, block.left + WIDE / 2, block.bottom + 0.6, f"<b>{escape_markup(block.name)}</b>", ink, 14)
    _add_text(figure, block.left + WIDE / 2, block.bottom + 0.24, escape_markup(block.size), palette.soft)


def _add_text(
    figure: go.Figure, x: float, y: float, text: str, colour: str, size: int = 12, xanchor: str = "center"
) -> None:
    font = {"color": colour, "size": size}
    figure.add_annotation(x=x, y=y, text=text, showarrow=False, font=font, xanchor=xanchor, yanchor="middle")


def _architecture_layout(palette: Palette) -> dict[str, Any]:
    axis = {"visible": False, "fixedrange": True}
    return base_layout(palette, ARCHITECTURE_HEIGHT, l=4, r=4, t=4, b=4) | {
        "xaxis": axis | {"range": [-0.4, DECODER + WIDE + 1]},
        "yaxis": axis | {"range": [-0.95, 6.75]},
        "width": 760,
    }
