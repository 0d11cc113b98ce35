"""Prints what TensorBoard's own reader finds in a run folder, as JSON: {"scalars": {tag: [[step, value]]}, "histograms": ..., "texts": ...}"""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0, "tensors": 0, "compressedHistograms": 0})
events.Reload()
tags = events.Tags()
scalars, histograms, texts = {}, {}, {}
for tag in tags["scalars"]:
    scalars[tag] = [[one.step, one.value] for one in events.Scalars(tag)]
for tag in tags["histograms"]:
    value = events.Histograms(tag)[0].histogram_value
    histograms[tag] = {"min": value.min, "max": value.max, "num": value.num, "sum": value.sum, "sum_squares": value.sum_squares,
                       "counts": list(value.bucket), "limits": list(value.bucket_limit)}
for tag in tags["tensors"]:
    texts[tag] = tensor_util.make_ndarray(events.Tensors(tag)[0].tensor_proto).item().decode()
print(json.dumps({"scalars": scalars, "histograms": histograms, "texts": texts}))
