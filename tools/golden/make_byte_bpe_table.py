#!/usr/bin/env python3
"""Writes src/text/byte_bpe_table.inc: the letters (L*) and numbers (N*) that GPT-2's pattern asks for, as ranges.

    python tools/golden/make_byte_bpe_table.py
"""
import pathlib
import unicodedata


def ranges(kind):
    result = []
    for c in range(0x110000):
        if unicodedata.category(chr(c))[0] != kind:
            continue
        if result and c == result[-1][1] + 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def table(comment, name, items):
    lines, line = [], " "
    for first, last in items:
        text = f" {{{first:#x}, {last:#x}}},"
        if len(line) + len(text) > 120:
            lines.append(line)
            line = " "
        line += text
    return f"// {comment}\nconstexpr CodeRange {name}[] = {{\n" + "\n".join(lines + [line]) + "\n};\n"


def main():
    text = f"// Written by tools/golden/make_byte_bpe_table.py (Unicode {unicodedata.unidata_version}); do not edit.\n"
    text += table("Categories L*.", "letters", ranges("L")) + table("Categories N*.", "numbers", ranges("N"))
    (pathlib.Path(__file__).resolve().parents[2] / "src" / "text" / "byte_bpe_table.inc").write_text(text)


if __name__ == "__main__":
    main()
