"""Runs exported files with torch alone and compares them with what headlab said: check_export.py cases.json"""

import json
import sys
import warnings

warnings.filterwarnings("ignore")
import torch


def pad(rows, value=0):
    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows], dtype=torch.long)


def check(case):
    module = torch.jit.load(case["file"])
    if "logits" in case:
        logits = module.full(torch.tensor(case["source"]), torch.tensor(case["mask"]).bool(), torch.tensor(case["target"]))
        difference = (logits.flatten().double() - torch.tensor(case["logits"], dtype=torch.double)).abs().max().item()
        assert difference < 1e-4, f"{case['file']}: logits differ by {difference}"
    for beam, expected in case.get("translations", {}).items():
        for batch in (len(case["sources"]), 1):
            got = []
            for start in range(0, len(case["sources"]), batch):
                ids = module.translate_ids(pad(case["sources"][start : start + batch]), beam=int(beam))
                got += [[id for id in row if id != module.target_pad] for row in ids.tolist()]
            assert got == expected, f"{case['file']}: beam {beam}, batches of {batch}: expected {expected}, got {got}"
    if "lines" in case:
        assert module.source_ids(case["lines"]) == case["ids"], f"{case['file']}: other ids than the tokenizer's"
        got = module.translate(case["lines"])
        assert got == case["texts"], f"{case['file']}: expected {case['texts']}, got {got}"


def check_frames(case):
    module = torch.jit.load(case["file"])
    frames, mask = torch.tensor(case["frames"]), torch.tensor(case["mask"]).bool()
    if "logits" in case:
        logits = module.full(frames, mask, torch.tensor(case["target"]))
        difference = (logits.flatten().double() - torch.tensor(case["logits"], dtype=torch.double)).abs().max().item()
        assert difference < 1e-4, f"{case['file']}: logits differ by {difference}"
    for beam, expected in case["transcriptions"].items():
        written = module.transcribe(frames, mask, beam=int(beam), max_length=8) if beam != "0" else module.best_path(frames, mask)
        got = [[id for id in row if id != module.target_pad] for row in written.tolist()]
        assert got == expected, f"{case['file']}: beam {beam}: expected {expected}, got {got}"


for case in json.load(open(sys.argv[1], encoding="utf-8")):
    check_frames(case) if "frames" in case else check(case)
