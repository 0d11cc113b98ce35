#!/usr/bin/env python3
"""Writes src/text/basic_tokens_table.inc: the Unicode properties that BERT's basic tokenisation asks for, as ranges.

    python tools/golden/make_wordpiece_tables.py

Everything is asked of this Python's unicodedata: categories, and canonical decompositions with their marks taken out
(Hangul syllables are left to the C++ side, which takes them apart by arithmetic).
"""
import pathlib
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def ranges(points):
    result = []
    for c in points:
        if result and c == result[-1][1] + 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def lines(items):
    result, line = [], " "
    for item in items:
        text = " {" + ", ".join(hex(v) for v in item) + "},"
        if len(line) + len(text) > 120:
            result.append(line)
            line = " "
        line += text
    return "\n".join(result + [line])


def table(comment, kind, name, items):
    return f"// {comment}\nconstexpr {kind} {name}[] = {{\n{lines(items)}\n}};\n"


def without_marks(c):
    return [ord(x) for x in unicodedata.normalize("NFD", chr(c)) if unicodedata.category(x) != "Mn"]


def main():
    category = {c: unicodedata.category(chr(c)) for c in CODE_POINTS}
    bases = []
    for c in CODE_POINTS:
        if 0xAC00 <= c <= 0xD7A3 or category[c] == "Mn":
            continue
        base = without_marks(c)
        if base != [c]:
            assert 1 <= len(base) <= 3, hex(c)
            bases.append([c, *base, *[0] * (3 - len(base))])
    for c in CODE_POINTS:  # a mark falls away with all that it is made of
        assert category[c] != "Mn" or without_marks(c) == [], hex(c)
    text = f"// Written by tools/golden/make_wordpiece_tables.py (Unicode {unicodedata.unidata_version}); do not edit.\n"
    text += table("Category Mn: accents and other marks that take no room.", "CodeRange", "nonspacing_marks",
                  ranges(c for c in CODE_POINTS if category[c] == "Mn"))
    text += table("Categories P*: punctuation beside the ASCII signs.", "CodeRange", "punctuation",
                  ranges(c for c in CODE_POINTS if category[c].startswith("P")))
    text += table("Categories Cc and Cf: control and format characters.", "CodeRange", "controls",
                  ranges(c for c in CODE_POINTS if category[c] in ("Cc", "Cf")))
    text += table("Category Zs: spaces.", "CodeRange", "spaces", ranges(c for c in CODE_POINTS if category[c] == "Zs"))
    text += table("What is left of a code point without its marks: {it, the others, filled up with 0}.", "Base", "bases", bases)
    root = pathlib.Path(__file__).resolve().parents[2]
    (root / "src" / "text" / "basic_tokens_table.inc").write_text(text)


if __name__ == "__main__":
    main()
