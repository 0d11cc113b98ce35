#!/usr/bin/env python3
"""Writes tests/golden/wordpiece.json: WordPiece ids of odd and ordinary texts, from a reference written here.

    python tools/golden/make_wordpiece_goldens.py [--output tests/golden]

The reference follows the description of BERT's tokenisation (arXiv 1810.04805 and the comments of its tokenization.py)
with Python's own str and unicodedata, sharing nothing with the C++ side. The vocabulary is made here too.
"""

import argparse
import json
import pathlib
import platform
import random
import unicodedata

CJK = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF),
       (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]


def is_control(c):
    return c not in "\t\n\r" and unicodedata.category(c) in ("Cc", "Cf")


def is_punctuation(c):
    return 33 <= ord(c) <= 47 or 58 <= ord(c) <= 64 or 91 <= ord(c) <= 96 or 123 <= ord(c) <= 126 or unicodedata.category(c)[0] == "P"


def basic(text, lower):
    kept = []
    for c in text:
        if c in "\0\ufffd" or is_control(c):
            continue
        kept.append(" " if c in " \t\n\r" or unicodedata.category(c) == "Zs" else c)
    spaced = "".join(f" {c} " if any(a <= ord(c) <= b for a, b in CJK) else c for c in kept)
    tokens = []
    for word in spaced.split():
        if lower:
            word = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
        tokens += "".join(f" {c} " if is_punctuation(c) else c for c in word).split()
    return tokens


def word_piece(word, ids):
    if len(word) > 100:
        return [ids["[UNK]"]]
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in ids:
                found.append(ids[piece])
                start = end
                break
        else:
            return [ids["[UNK]"]]
    return found


def vocabulary():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZäöüß"
    pieces += list(letters) + ["##" + c for c in letters] + list(".,;:!?'\"()-[]#$%&*+/<=>@\\^_`{|}~")
    pieces += ["the", "un", "##able", "##aff", "##ing", "word", "play", "##ed", "Ub", "##er", "über", "ube", "grosse", "日", "本", "語",
               "²", "ᄒ", "##ᅡ", "##ᆫ", "σ", "##α", "##ς", "—", "„", "“"]
    return pieces


TEXTS = [
    "", " ", "the", "unaffable", "Unaffable words, played!", "the  words\tare\nplaying", "ÜBER die größte Übung", "über uber",
    "Ae\u0301roport A\u030angstro\u0308m", "日本語 text日本", "zero\u200bwidth\ufeff soft\u00adhyphen", "a\u00a0b\u3000c\u2003d\u2028e\u2029f\u0085g\x1ch",
    "[SEP] [UNK] ##ing [MASK]", "don't (stop) - \"now\"", "„Wort“ — ja", "한 ΣΑΣ σας", "x" * 100, "x" * 101, "x" * 100 + " x",
    "tab\x00nul\x07bell\ufffd", "\U0001f642 smile", "İstanbul ı", "x²", "\u037e \u00b7", "ﬁne", "1,000.50€", "a_b`c^d|e~f$g+h<i=j>k", "\u0301\u0308",
]


def random_texts(count):
    draw = random.Random(5)
    ranges = [(0x20, 0x7F), (0xA0, 0x250), (0x2B0, 0x530), (0x590, 0x700), (0x900, 0x980), (0xE00, 0xE80), (0x1E00, 0x2070), (0x20A0, 0x2200),
              (0x3000, 0x3100), (0x4E00, 0x4E20), (0xAC00, 0xAC40), (0xD780, 0xD7A4), (0xF900, 0xF920), (0xFB00, 0xFB50), (0xFF00, 0xFFF0),
              (0x1D15E, 0x1D165), (0x1F600, 0x1F610), (0x2F800, 0x2F810)]
    texts = []
    for _ in range(count):
        texts.append("".join(chr(draw.randrange(*draw.choice(ranges if draw.random() < 0.6 else ranges[:2]))) for _ in range(draw.randrange(1, 25))))
    return texts


def main():
    parser = argparse.ArgumentParser(description="writes goldens of WordPiece")
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--output", type=pathlib.Path, default=root / "tests" / "golden")
    output = parser.parse_args().output
    pieces = vocabulary()
    ids = {piece: i for i, piece in enumerate(pieces)}
    assert len(ids) == len(pieces)
    rows = []
    for text in TEXTS + random_texts(300):
        row = {"text": text}
        for name, lower in (("cased", False), ("lower", True)):
            tokens = basic(text, lower)
            row[name] = {"tokens": tokens, "ids": [i for token in tokens for i in word_piece(token, ids)]}
        rows.append(row)
    about = {"made_by": "python tools/golden/make_wordpiece_goldens.py",
             "versions": {"python": platform.python_version(), "unicode": unicodedata.unidata_version},
             "vocabulary": pieces, "rows": rows}
    text = json.dumps(about, ensure_ascii=True).replace('{"text"', '\n{"text"')
    (output / "wordpiece.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
