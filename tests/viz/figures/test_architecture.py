"""The figure of a Transformer holds the sizes of the model, and nothing else."""

from __future__ import annotations

from attenscope.network.config import PRESETS, make_preset_config
from attenscope.viz.figures.architecture import list_diagram_blocks, plot_architecture
from attenscope.viz.figures.figure_style import DARK, LIGHT
from attenscope.viz.training.architecture_and_card_views import describe_architecture


def test_every_size_of_a_model_stands_in_its_picture() -> None:
    for name in PRESETS:
        config = make_preset_config(name)
        blocks = list_diagram_blocks(config)
        assert sum(one.is_attention for one in blocks) == 3
        assert sum(f"{config.heads} heads of {config.d_model // config.heads}" == one.size for one in blocks) == 3
        texts = [one.text for one in plot_architecture(config, LIGHT).layout.annotations]
        assert texts.count(f"× {config.encoder_layers}") + texts.count(f"× {config.decoder_layers}") in (2, 4)
        assert any(f"{config.feed_forward:,}" in one for one in texts)
        assert any(f"{config.target_vocab_size:,}" in one for one in texts)
        said = describe_architecture(config)
        assert f"{(config.encoder_layers + 2 * config.decoder_layers) * config.heads} heads look at words" in said


def test_the_picture_follows_the_theme() -> None:
    config = make_preset_config("original")
    assert plot_architecture(config, DARK).layout.paper_bgcolor == DARK.background
