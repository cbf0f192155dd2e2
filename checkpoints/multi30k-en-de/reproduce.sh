#!/bin/sh
# Trains this model again: ./reproduce.sh path/to/multi30k [folder for what lies between, default runs/multi30k]
#
# Two helpers come first, one in each direction; each translates the training text, and the model learns from the text
# and both translations (data diversification: Nguyen et al. 2020, arXiv:1911.01986). Started again, it goes on.
set -eu
data=$1
here=$(cd "$(dirname "$0")" && pwd)
runs=${2:-runs/multi30k}

for helper in forward backward; do
    test -f "$runs/$helper-out/model.safetensors" || python -m model train --config "$here/$helper.json" --data "$data" \
        --state "$runs/$helper" --output "$runs/$helper-out"
    mkdir -p "$runs/from-$helper"
done
cp "$data/train.en" "$runs/from-forward/train.en"
cp "$data/train.de" "$runs/from-backward/train.de"
test -f "$runs/from-forward/train.de" || {
    python -m model translate --checkpoint "$runs/forward-out" --beam 4 <"$data/train.en" >"$runs/written"
    mv "$runs/written" "$runs/from-forward/train.de"
}
test -f "$runs/from-backward/train.en" || {
    python -m model translate --checkpoint "$runs/backward-out" --beam 4 <"$data/train.de" >"$runs/written"
    mv "$runs/written" "$runs/from-backward/train.en"
}
python -m model train --config "$here/recipe.json" --data "$data" "$runs/from-forward" "$runs/from-backward" \
    --state "$runs/model"
