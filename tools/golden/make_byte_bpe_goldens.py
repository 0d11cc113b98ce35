#!/usr/bin/env python3
"""Writes tests/golden/byte_bpe.json: byte-level BPE ids, from a reference written here.

    python tools/golden/make_byte_bpe_goldens.py [--data HEADLAB_DATA] [--output tests/golden]

The reference follows the description of GPT-2's encoding (Radford et al. 2019): its pattern is spelt out with unicodedata,
its merges are found by a loop of their own. A small vocabulary is trained here (most frequent pair first) and stored; with
--data (or the environment variable HEADLAB_DATA) also the ids under GPT-2's own vocabulary, which lies there.
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import random
import unicodedata

WHITE = set("\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}


def letters_of_bytes():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in keep]
    table = {b: chr(b) for b in keep}
    table.update({b: chr(256 + i) for i, b in enumerate(others)})
    return table


BYTES = letters_of_bytes()


def kind(c):
    if c in WHITE:
        return "s"
    return {"L": "L", "N": "N"}.get(unicodedata.category(c)[0], "o")


def chunks(text):
    i, n = 0, len(text)
    while i < n:
        for suffix in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d"):
            if text.startswith(suffix, i):
                j = i + len(suffix)
                break
        else:
            j = i + 1 if text[i] == " " and i + 1 < n and kind(text[i + 1]) != "s" else i
            wanted = kind(text[j])
            while j < n and kind(text[j]) == wanted:
                j += 1
            if wanted == "s" and j < n and j - i > 1:
                j -= 1
        yield text[i:j]
        i = j


def split(chunk):
    return [BYTES[b] for b in chunk.encode()]


def join(pieces, pair):
    out = []
    for piece in pieces:
        if out and (out[-1], piece) == pair and not out[-1] is None:
            out[-1] = "".join(pair)
            # what was just made may not be joined again within this pass
            out.append(None)
        else:
            if out and out[-1] is None:
                out.pop()
            out.append(piece)
    return [piece for piece in out if piece is not None]


def encode(text, ids, ranks):
    found = []
    for chunk in chunks(text):
        pieces = split(chunk)
        while True:
            pairs = {pair: ranks[pair] for pair in zip(pieces, pieces[1:]) if pair in ranks}
            if not pairs:
                break
            pieces = join(pieces, min(pairs, key=pairs.get))
        found += [ids[piece] for piece in pieces]
    return found


def trained(lines, count):
    words = collections.Counter(chunk for line in lines for chunk in chunks(line))
    cut = {word: split(word) for word in words}
    merges = []
    for _ in range(count):
        pairs = collections.Counter()
        for word, pieces in cut.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += words[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        cut = {word: join(pieces, best) for word, pieces in cut.items()}
    vocabulary = [BYTES[b] for b in range(256)]
    for a, b in merges:
        if a + b not in vocabulary:
            vocabulary.append(a + b)
    return vocabulary + ["<|endoftext|>"], merges


LINES = ["the cat sat on the mat, and the dog's bone wasn't there.", "  two  spaces and\n\nnew lines\tand tabs ", "Übung macht den größten Meister!",
         "they'll've 123 45,678.90 x2", "日本語 テキスト", "\U0001f642\U0001f642 smile", "'s it's 'tis I'm we'd you're", "a\u00a0b\u3000c \u2028 d", "", " ", "   ",
         "<|endoftext|>", "the the thethe aaaa aaa", "x\x1cy\x1fz", "½ ² ٣ Ⅷ", "e\u0301 combining"]


def random_texts(count):
    draw = random.Random(9)
    ranges = [(0x20, 0x7F), (0x09, 0x0E), (0xA0, 0x250), (0x370, 0x530), (0x660, 0x66A), (0x2000, 0x2070), (0x2150, 0x2190), (0x3000, 0x3050), (0x1F600, 0x1F610)]
    return ["".join(chr(draw.randrange(*draw.choice(ranges if draw.random() < 0.5 else ranges[:1]))) for _ in range(draw.randrange(1, 30))) for _ in range(count)]


def main():
    parser = argparse.ArgumentParser(description="writes goldens of byte-level BPE")
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--output", type=pathlib.Path, default=root / "tests" / "golden")
    parser.add_argument("--data", default=os.environ.get("HEADLAB_DATA", ""))
    arguments = parser.parse_args()
    texts = LINES + random_texts(150)
    vocabulary, merges = trained(LINES[:8] * 3, 60)
    ids, ranks = {piece: i for i, piece in enumerate(vocabulary)}, {pair: i for i, pair in enumerate(merges)}
    rows = [{"text": text, "ids": encode(text, ids, ranks)} for text in texts]
    about = {"made_by": "python tools/golden/make_byte_bpe_goldens.py",
             "versions": {"python": platform.python_version(), "unicode": unicodedata.unidata_version},
             "vocabulary": vocabulary, "merges": [" ".join(pair) for pair in merges], "rows": rows}
    folder = pathlib.Path(arguments.data) / "tok-gpt2-bpe"
    if arguments.data and folder.exists():
        own = json.loads((folder / "encoder.json").read_text())
        lines = (folder / "vocab.bpe").read_text().split("\n")[1:]
        own_ranks = {tuple(line.split()): i for i, line in enumerate(line for line in lines if line)}
        about["gpt2"] = [{"text": text, "ids": encode(text, own, own_ranks)} for text in ["Hello world", *texts[:60]]]
    (arguments.output / "byte_bpe.json").write_text(json.dumps(about).replace('{"text"', '\n{"text"') + "\n")


if __name__ == "__main__":
    main()
