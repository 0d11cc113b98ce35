#!/usr/bin/env python3
"""Writes src/text/lowercase_table.inc: what str.lower() of this Python does to each code point, as ranges.

    python tools/golden/make_lowercase_table.py

The C++ side must lower-case as sacreBLEU does, and sacreBLEU lower-cases with str.lower(). Everything is found by
asking str.lower() itself; the capital sigma, whose lower case depends on its neighbours, needs two more
sets of code points.
"""
import pathlib
import sys
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def runs(mapping):
    """[(first, last, stride, delta)]: stride 2 covers the alphabets that alternate upper and lower case."""
    items = sorted(mapping.items())
    result, i = [], 0
    while i < len(items):
        best = i
        stride_of_best = 1
        for stride in (1, 2):
            j = i
            while j + 1 < len(items) and items[j + 1] == (items[j][0] + stride, items[i][1]):
                j += 1
            if j > best:
                best, stride_of_best = j, stride
        result.append((items[i][0], items[best][0], stride_of_best, items[i][1]))
        i = best + 1
    return result


def ranges(points):
    result = []
    for c in points:
        if result and c == result[-1][1] + 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def rows(items, width):
    lines, line = [], " "
    for item in items:
        text = " {" + ", ".join(str(v) if v < 0 or i == 3 else hex(v) for i, v in enumerate(item)) + "},"
        if len(line) + len(text) > width:
            lines.append(line)
            line = " "
        line += text
    return "\n".join(lines + [line])


def main():
    lower, longer = {}, []
    for c in CODE_POINTS:
        text = chr(c).lower()
        if len(text) > 1:
            longer.append(c)
        elif ord(text) != c:
            lower[c] = ord(text) - c
    assert longer == [0x130], longer  # unicode.cpp has this one by hand

    def final(text):
        return text.lower().endswith("\u03c2")

    cased = [c for c in CODE_POINTS if final(chr(c) + "\u03a3")]
    cased_set = set(cased)
    ignorable = [c for c in CODE_POINTS if c not in cased_set and final("A" + chr(c) + "\u03a3")]

    out = pathlib.Path(__file__).parents[2] / "src/text/lowercase_table.inc"
    out.write_text(
        f"// Written by tools/golden/make_lowercase_table.py (Unicode {unicodedata.unidata_version}); do not edit.\n"
        "// Code points that have another lower case: {first, last, stride, what is added}.\n"
        f"constexpr Run lower_runs[] = {{\n{rows(runs(lower), 120)}\n}};\n"
        "// Code points that make a following capital sigma a final one: {first, last}.\n"
        f"constexpr Range cased[] = {{\n{rows(ranges(cased), 120)}\n}};\n"
        "// Code points that are passed over when the neighbours of a capital sigma are looked at: {first, last}.\n"
        f"constexpr Range case_ignorable[] = {{\n{rows(ranges(ignorable), 120)}\n}};\n",
        encoding="ascii",
    )
    print(f"{out}: Python {sys.version.split()[0]}, {len(lower)} code points, {len(runs(lower))} runs")


if __name__ == "__main__":
    main()
