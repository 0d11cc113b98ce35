#include "src/export/loops.h"

#include <sstream>

namespace headlab {
namespace {

// As src/decode/search.cpp, in arrays of [examples E, hypotheses W], an absent hypothesis has
// log-probability -inf. dtype 4 is long, 7 double.
const char* const text = R"script(
def log_probabilities(self, logits: Tensor) -> Tensor:
    if logits.dtype != 7:
        logits = logits.float()
    log_p = torch.log_softmax(logits, 1)
    never = float("-inf")
    if self.target_pad < log_p.size(1) and self.target_pad != self.target_eos:
        log_p[:, self.target_pad] = never
    if self.target_bos < log_p.size(1) and self.target_bos != self.target_eos:
        log_p[:, self.target_bos] = never
    assert not bool(torch.isnan(log_p).any()), "decoding: the model gave NaN; its weights or its input are not finite"
    return log_p

def length_divisor(self, length: int, alpha: float) -> float:
    return ((5.0 + length) / 6.0) ** alpha

def reordered(self, caches: List[Tensor], rows: Tensor) -> List[Tensor]:
    moved: List[Tensor] = []
    for cache in caches:
        moved.append(cache.index_select(0, rows))
    return moved

def largest(self, x: Tensor, count: int) -> Tuple[Tensor, Tensor]:
    if count >= x.size(1):
        value, index = torch.sort(x, stable=True, dim=1, descending=True)
        return value.double(), index
    value, index = torch.topk(x, count + 1, 1)
    if bool((value[:, count] == value[:, count - 1]).any()):
        value, index = torch.sort(x, stable=True, dim=1, descending=True)
        return value[:, :count].double(), index[:, :count]
    index, by_index = torch.sort(index[:, :count], dim=1)
    value, order = torch.sort(value.gather(1, by_index), stable=True, dim=1, descending=True)
    return value.double(), index.gather(1, order)

def greedy(self, memory: Tensor, mask: Tensor, limits: Tensor, length_penalty: float) -> Tuple[Tensor, Tensor]:
    examples = torch.arange(memory.size(0), device=memory.device)
    out = torch.full([memory.size(0), int(limits.max()) + 1], self.target_pad, dtype=4, device=memory.device)
    scores = torch.zeros([memory.size(0)], dtype=7, device=memory.device)
    logits, caches = self.begin(out[:, :1] * 0 + self.target_bos, memory, mask)
    length = 0
    while examples.size(0) > 0:
        log_p = self.log_probabilities(logits)
        best, token = log_p.max(1)
        last = limits.index_select(0, examples) <= length
        best = torch.where(last, log_p[:, self.target_eos], best)
        token = token.masked_fill(last, self.target_eos)
        total = scores.index_select(0, examples) + best.double()
        live = token != self.target_eos
        divisor = self.length_divisor(length + 1, length_penalty)
        scores.index_copy_(0, examples, torch.where(live, total, total / divisor))
        if not bool(live.all()):
            rows = live.nonzero().squeeze(1)
            examples = examples.index_select(0, rows)
            token = token.index_select(0, rows)
            mask = mask.index_select(0, rows)
            caches = self.reordered(caches, rows)
        if examples.size(0) > 0:
            out[:, length] = out[:, length].index_copy(0, examples, token)
            length += 1
            logits, caches = self.step(token.unsqueeze(1), length, mask, caches)
    return out[:, :length], scores

def beam_search(self, memory: Tensor, mask: Tensor, limits: Tensor, beam: int, length_penalty: float) -> Tuple[Tensor, Tensor]:
    never = float("-inf")
    device = memory.device
    examples = torch.arange(memory.size(0), device=device)
    longest = int(limits.max()) + 1
    out = torch.full([memory.size(0), longest], self.target_pad, dtype=4, device=device)
    scores = torch.full([memory.size(0)], never, dtype=7, device=device)
    bounds = torch.pow((6.0 + limits.double()) / 6.0, length_penalty)
    live = torch.zeros([memory.size(0), 1], dtype=7, device=device)
    ids = torch.zeros([memory.size(0), 0], dtype=4, device=device)
    logits, caches = self.begin(out[:, :1] * 0 + self.target_bos, memory, mask)
    length = 0
    used = 0
    while examples.size(0) > 0:
        E = examples.size(0)
        W = live.size(1)
        log_p = self.log_probabilities(logits)
        value, index = self.largest(log_p, beam)
        k = value.size(1)
        value = value.view(E, W, k)
        index = index.view(E, W, k)
        last = (limits.index_select(0, examples) <= length).view(E, 1, 1)
        if bool(last.any()):
            only_eos = torch.full([1, 1, k], never, dtype=7, device=device)
            only_eos = only_eos.repeat(E, W, 1)
            only_eos[:, :, 0] = log_p[:, self.target_eos].double().view(E, W)
            value = torch.where(last, only_eos, value)
            index = index.masked_fill(last, self.target_eos)
        totals = (live.unsqueeze(2) + value).flatten(1)
        totals, order = torch.sort(totals, stable=True, dim=1, descending=True)
        K = min(beam, totals.size(1))
        totals = totals[:, :K]
        order = order[:, :K]
        parent = torch.div(order, k, rounding_mode="floor")
        token = index.flatten(1).gather(1, order)
        first_row = (torch.arange(E, device=device) * W).unsqueeze(1)

        ends = token == self.target_eos
        of_end, which = totals.masked_fill(~ends, never).max(1)
        of_end = of_end / self.length_divisor(length + 1, length_penalty)
        better = (of_end > scores.index_select(0, examples)).nonzero().squeeze(1)
        if better.size(0) > 0:
            rows = (first_row + parent).gather(1, which.unsqueeze(1)).squeeze(1).index_select(0, better)
            written = examples.index_select(0, better)
            padding = torch.full([better.size(0), longest - length], self.target_pad, dtype=4, device=device)
            out.index_copy_(0, written, torch.cat([ids.index_select(0, rows), padding], 1))
            scores.index_copy_(0, written, of_end.index_select(0, better))
            used = max(used, length)

        live, order = torch.sort(totals.masked_fill(ends, never), stable=True, dim=1, descending=True)
        parent = parent.gather(1, order)
        token = token.gather(1, order)
        go_on = live[:, 0] / bounds.index_select(0, examples) > scores.index_select(0, examples)
        rows = (first_row + parent)[go_on].flatten()
        token = token[go_on].flatten().unsqueeze(1)
        live = live[go_on]
        examples = examples[go_on]
        if examples.size(0) > 0:
            ids = torch.cat([ids.index_select(0, rows), token], 1)
            mask = mask.index_select(0, rows)
            length += 1
            logits, caches = self.step(token, length, mask, self.reordered(caches, rows))
    return out[:, :used], scores

def search(self, memory: Tensor, mask: Tensor, limits: Tensor, beam: int, length_penalty: float) -> Tuple[Tensor, Tensor]:
    assert beam >= 1, "beam: expected 1 (greedy) or more, got {}".format(beam)
    assert length_penalty >= 0.0, "length_penalty: expected 0 or more, got {}".format(length_penalty)
    if beam == 1:
        return self.greedy(memory, mask, limits, length_penalty)
    return self.beam_search(memory, mask, limits, beam, length_penalty)
)script";

/// A float of TorchScript.
std::string real(double x) {
  std::ostringstream number;
  number.precision(17);
  number << x;
  const auto digits = number.str();
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

}  // namespace

void define_search(torch::jit::Module& module, const SearchOptions& search) {
  module.define(text);
  module.define(R"script(
def limits_of(self, lengths: Tensor, max_length: int) -> Tensor:
    if max_length > 0:
        limits = lengths * 0 + max_length
    else:
        limits = torch.floor(lengths.double() * )script" +
                real(search.max_length_factor) + " + " + real(static_cast<double>(search.max_length_extra)) +
                R"script().long()
    return limits.clamp(max=self.max_length - 1)
)script");
}

std::string search_arguments(const SearchOptions& search) {
  return "beam: int = " + std::to_string(search.beam) + ", length_penalty: float = " + real(search.length_penalty) +
         ", max_length: int = " + std::to_string(search.max_length);
}

}  // namespace headlab
