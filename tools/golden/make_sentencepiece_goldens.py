#!/usr/bin/env python3
"""Writes tests/golden/sentencepiece.json: small models and the ids that the reference library gives with them.

    python tools/golden/make_sentencepiece_goldens.py [--data HEADLAB_DATA] [--output tests/golden]

Needs the Python package sentencepiece, which is the reference library. The models are trained here on sentences made of
syllables, without a table of normalisation rules, so that they stay small; they are stored in the file. With --data (or the
environment variable HEADLAB_DATA) also ids of two models that have such a table and lie there; only the ids are stored.
"""

import argparse
import base64
import io
import json
import os
import pathlib
import platform
import random

import sentencepiece

MODELS = [("unigram", {}), ("bpe", {}), ("word", {"hard_vocab_limit": False}), ("char", {"hard_vocab_limit": False}),
          ("bpe", {"byte_fallback": True, "vocab_size": 400}), ("unigram", {"byte_fallback": True, "vocab_size": 400}),
          ("bpe", {"pad_id": -1, "unk_id": 0, "bos_id": 1, "eos_id": 2})]
DATA_MODELS = ["tok-sentencepiece-test/test_model.model", "tok-sentencepiece-test/test_ja_model.model"]
ODD = ["", " ", "  two  spaces ", "\u2581 a\u2581b", "Die größte Übung, ärgerlich!", "日本語 テキスト", "\U0001f642 x\U0001f642", "tab\tand\u00a0no-break",
       "e\u0301 \ufb01 \uff26\uff35\uff2c\uff2c", "<s> </s> <unk>", "zero\u200bwidth", "AaBb 0123"]


def sentences(count, seed):
    draw = random.Random(seed)
    syllables = ["ba", "do", "ki", "lu", "mö", "ne", "pra", "schu", "tä", "wei", "zo", "gri", "fel", "hun"]
    words = ["".join(draw.choices(syllables, k=draw.randrange(2, 4))) for _ in range(150)]
    return [" ".join(draw.choices(words, k=draw.randrange(3, 9))) + draw.choice([".", "!", ""]) for _ in range(count)]


def rows(processor, texts):
    return [{"text": text, "ids": processor.encode(text), "decoded": processor.decode(processor.encode(text))} for text in texts]


def main():
    parser = argparse.ArgumentParser(description="writes goldens of SentencePiece")
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--output", type=pathlib.Path, default=root / "tests" / "golden")
    parser.add_argument("--data", default=os.environ.get("HEADLAB_DATA", ""))
    arguments = parser.parse_args()
    training, texts = sentences(400, 1), ODD + sentences(25, 2)
    models = []
    for kind, more in MODELS:
        settings = {"vocab_size": 120, "pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3, "normalization_rule_name": "identity",
                    "num_threads": 1, "minloglevel": 2, **more}
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(training), model_writer=model, model_type=kind, **settings)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        models.append({"type": kind, "options": more, "model": base64.b64encode(model.getvalue()).decode(), "rows": rows(processor, texts)})
    files = []
    for name in DATA_MODELS:
        path = pathlib.Path(arguments.data) / name
        if arguments.data and path.exists():
            processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
            lines = texts + ["I saw a girl with a telescope.", "This eBook is for the use of anyone anywhere at no cost!", "吾輩は猫である。名前はまだ無い。"]
            files.append({"file": name, "rows": rows(processor, lines)})
    about = {"made_by": "python tools/golden/make_sentencepiece_goldens.py",
             "versions": {"python": platform.python_version(), "sentencepiece": sentencepiece.__version__}, "models": models, "files": files}
    text = json.dumps(about).replace('{"text"', '\n{"text"').replace('{"type"', '\n{"type"').replace('{"file"', '\n{"file"')
    (arguments.output / "sentencepiece.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
