#!/usr/bin/env python3
"""Writes tests/golden/metrics.json: scores, signatures and tokens of sacreBLEU on texts written for the purpose.

    python tools/golden/make_metric_goldens.py        needs sacrebleu (the version is recorded)

The texts are meant to be awkward: numbers, hyphens, quotes, HTML entities, emoji, Chinese, white space of every kind.
"""
import itertools
import json
import pathlib
import random
import sys

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

HAND = [  # (hypothesis, first reference, second reference)
    ("The cat sat on the mat.", "The cat is sitting on the mat.", "A cat sat on the mat."),
    ("Der Hund schläft im Garten.", "Der alte Hund schläft im Garten.", "Im Garten schläft der Hund."),
    ("It cost 1,234.5 euros, i.e. too much.",
     "It cost 1,234.50 euros; too much!",
     "That cost 1.234,5 euros, too much."),
    ("A well-known 3-year-old, state-of-the-art.",
     "A well-known, 3-year old state of the art.",
     "Well-known - 3 - years."),
    ('He said: "Stop!" and left...',
     "He said: \u201cStop!\u201d and left\u2026",
     "\u201eHalt!\u201c, sagte er; dann ging er."),
    ("It's the dogs' bone, isn't it?",
     "It\u2019s the dogs\u2019 bone, isn\u2019t it?",
     "It is the dog's bone, is it not?"),
    ("Tom &amp; Jerry &lt;b&gt; &quot;x&quot;", 'Tom & Jerry <b> "x"', "Tom &amp;amp; Jerry &#38; &nbsp;"),
    ("\U0001F600 nice \U0001F44D\U0001F3FD day", "\U0001F600 a nice \U0001F44D day \u2764\ufe0f", "nice day"),
    ("\u6211\u4eec\u53bb\u5317\u4eac\u3002",
     "\u6211\u4eec\u6628\u5929\u53bb\u4e86\u5317\u4eac\u3002",
     "\u6211\u53bb\u5317\u4eac\uff0c\u4f60\u5462\uff1f"),
    ("two  spaces   here", "two spaces here", " two  spaces here "),
    ("a\u00a0no-break\u202fspace\u3000wide", "a no-break space wide", "a\u00a0no-break space\u2003wide"),
    ("", "Something was here.", "Nothing."),
    ("Something was here.", "", "Nothing was."),
    ("", "", ""),
    ("   ", "x", "\t"),
    ("x", "x", "y"),
    ("I", "I.", "i"),
    ("Das ist 50% g\u00fcnstiger (ca. 3.000 \u20ac).",
     "Das ist um 50 % g\u00fcnstiger (ca. 3000 \u20ac).",
     "Es kostet 3,000 \u20ac / 2."),
    ("mail: a.b@c-d.org, http://x.y/z?q=1&r=2#top",
     "Mail: a.b@c-d.org; http://x.y/z?q=1&r=2",
     "a_b ~ {c} [d] \\e ^f `g| h"),
    ("<skipped> end- \n of line-\nbreak", "end of linebreak", "end - of line - break"),
    ("STRASSE \u0130STANBUL \u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03a3\u0391\u03a3.",
     "stra\u00dfe i\u0307stanbul \u03bf\u03b4\u03c5\u03c3\u03c3\u03b5\u03c5\u03c2 \u03c3\u03b1\u03c2.",
     "Stra\u00dfe"),
    ("1.,2,.3 .4 5. ,6 7, -8 9- 10-11 a-1 1-a", "1,2.3 .4 5 , 6 7 - 8 9 10 - 11 a - 1 1 - a", "1.2.3,4,5"),
    ("the the the the the the the", "the cat is on the mat", "there is a cat on the mat"),
    ("a b c d e f g h", "a b c d x f g h", "a b c d"),
    ("line\u2028separator\u0085next\u001cfile", "line separator next file", "line\u2029separator"),
    ("e\u0301 combining \ufeffmark \u200bzero", "\u00e9 combining mark zero", "e combining"),
]

PIECES = [
    "the", "The", "dog", "Hund", "der", "\u00dcber", "stra\u00dfe", "sieht", "a", "1", "23", "4.5", "6,7", "8-9", ".",
    ",", "-", "--", "...", "!", "?", ";", ":", "'", "'s", '"', "(", ")", "[", "]", "{", "}", "/", "\\", "@", "#", "$",
    "%", "^", "&", "*", "+", "=", "<", ">", "|", "~", "`", "_", "&amp;", "&lt;", "&quot;", "&gt;", "&apos;", "\u20ac",
    "\u2013", "\u2014", "\u201c", "\u201d", "\u00ab", "\u00bb", "\u4e2d", "\u6587", "\u3002", "\u65e5\u672c",
    "\u041f\u0440\u0438\u0432\u0435\u0442", "\u0633\u0644\u0627\u0645", "\U0001F680", "\u03a3", "\u03c3\u03a3",
    "\u0391\u03a3", "\u0130", "\u01c5", "\u1e9e", "\u2160", "\U00010400", "\u13a0", "\u10a0", "e\u0301",
]
SPACES = [" "] * 8 + ["", "", "", "  ", "\t", "\u00a0", "\u2009", "\u3000"]


def random_line(rng, longest):
    return "".join(rng.choice(PIECES) + rng.choice(SPACES) for _ in range(rng.randint(0, longest)))


def disturbed(rng, line):
    """A line that shares much with the given one: characters dropped, doubled, replaced."""
    out = []
    for c in line:
        draw = rng.random()
        if draw < 0.03:
            continue
        out.append(c)
        if draw > 0.97:
            out.append(rng.choice([c, " ", rng.choice(PIECES)]))
    return "".join(out)


def corpora():
    rng = random.Random(20)
    result = {"hand": ([h for h, _, _ in HAND], [[a for _, a, _ in HAND], [b for _, _, b in HAND]])}
    for name, rows, longest in (("random", 120, 24), ("short", 12, 3)):
        first = [random_line(rng, longest) for _ in range(rows)]
        second = [disturbed(rng, line) for line in first]
        result[name] = ([disturbed(rng, line) for line in first], [first, second])
    result["no match"] = (["x y z", "w"], [["a b c d", "e f"]])
    result["no 4-gram match"] = (["a b c x d e", "q a b"], [["a b c y d e f", "a b"]])
    result["too short for 4-grams"] = (["a b", "c"], [["a b", "c"]])
    result["perfect"] = (["This is a small test of it.", "So is this, of course."],) + (
        [["This is a small test of it.", "So is this, of course."]],)
    return result


BLEU_OPTIONS = [
    {}, {"lower_case": True}, {"tokenizer": "none"}, {"tokenizer": "char"}, {"smoothing": "floor"},
    {"smoothing": "add-k"}, {"smoothing": "none"}, {"smoothing": "floor", "smoothing_value": 0.25},
    {"smoothing": "add-k", "smoothing_value": 0.5},
    {"effective_order": True}, {"effective_order": True, "smoothing": "none", "lower_case": True},
]
CHRF_OPTIONS = [
    {}, {"word_order": 2}, {"lower_case": True}, {"whitespace": True}, {"word_order": 1, "beta": 1, "char_order": 4},
    {"word_order": 2, "lower_case": True, "beta": 3},
]
RENAMED = {"lower_case": "lowercase", "tokenizer": "tokenize", "smoothing": "smooth_method",
           "smoothing_value": "smooth_value"}


def main():
    cases = []
    for metric, maker, all_options in (("bleu", BLEU, BLEU_OPTIONS), ("chrf", CHRF, CHRF_OPTIONS)):
        for (name, (hypotheses, references)), options in itertools.product(corpora().items(), all_options):
            arguments = {RENAMED.get(key, key): value for key, value in options.items()}
            if metric == "bleu":
                arguments["force"] = True  # no advice about tokenised periods
            for count in range(1, len(references) + 1):
                scorer = maker(**arguments)
                score = scorer.corpus_score(hypotheses, references[:count])
                case = {"metric": metric, "corpus": name, "references": count, "options": options,
                        "score": score.score, "line": score.format(signature=str(scorer.get_signature()))}
                if metric == "bleu":
                    case["counts"] = [score.sys_len, score.ref_len]
                if not options or options == {"effective_order": True} or options == {"word_order": 2}:
                    effective = maker(**arguments)
                    case["sentences"] = [
                        effective.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references[:count])]
                cases.append(case)
    tokens = []
    texts = [t for row in HAND for t in row] + corpora()["random"][0]
    for tokenizer, lower in (("13a", False), ("13a", True), ("char", False), ("none", True)):
        scorer = BLEU(tokenize=tokenizer, lowercase=lower)
        tokens.append({"tokenizer": tokenizer, "lower_case": lower,
                       "tokens": [" ".join(scorer._preprocess_segment(t).split()) for t in texts]})
    out = pathlib.Path(__file__).parents[2] / "tests/golden/metrics.json"
    golden = {
        "made_by": "tools/golden/make_metric_goldens.py",
        "versions": {"python": sys.version.split()[0], "sacrebleu": sacrebleu.__version__},
        "corpora": {n: {"hypotheses": h, "references": r} for n, (h, r) in corpora().items()},
        "texts": texts, "tokens": tokens, "cases": cases,
    }
    with out.open("w", encoding="ascii") as file:  # escaped, so that no editor can change the white space in it
        json.dump(golden, file, indent=0)
        file.write("\n")
    print(f"{out}: {len(cases)} cases, {out.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
