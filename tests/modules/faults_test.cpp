// Faults that users of other systems have met; each test is named after its case.
#include "modules/attention/gate/windows.h"
#include "modules/loss/cross_entropy.h"
#include "tests/catch.h"
#include "tests/support/models.h"
#include "tests/support/operators.h"

namespace headlab {

TEST_CASE("nan-grad-masked-row: a query that may see nothing gives 0 and finite gradients, on both paths", "[cases]") {
  AttentionOptions options;
  options.heads = 1;
  auto attention = make_attention(options, 1);
  Visibility see;
  see.allowed_BTS = torch::tensor({1, 0, 0, 1, 1, 0, 0, 1, 1}, torch::kLong).to(torch::kBool).view({3, 3});
  see.key_mask_BS = torch::tensor({1, 1, 1, 1, 0, 0}, torch::kLong).to(torch::kBool).view({2, 3});
  for (const bool instrumented : {false, true}) {
    INFO((instrumented ? "instrumented" : "fused"));
    Tensor z;
    LambdaTap tap([&](At at, Site) { return at == At::z || (instrumented && at == At::weights); },
                  [&](At at, Site, Tensor value) {
                    if (at == At::z) z = value;
                    return value;
                  });
    Forward run;
    run.taps = {&tap};
    attention->zero_grad();
    auto x = noise({2, 3, 1}, "x").requires_grad_();
    const auto ran = operators_of([&] { attention->forward(call_of(x, run, see)).select(1, 0).sum().backward(); });
    CHECK(ran.count("aten::_scaled_dot_product_flash_attention_for_cpu") == (instrumented ? 0 : 1));
    CHECK(z[1][0][2].item<float>() == 0);  // sees keys 1 and 2, which are padding
    CHECK(z[0][0][2].item<float>() != 0);
    CHECK(finite(x.grad()));
    for (const auto& p : attention->parameters()) CHECK(finite(p.grad()));
    // Also when the loss looks at the masked row itself.
    attention->zero_grad();
    auto again = noise({2, 3, 1}, "x").requires_grad_();
    attention->forward(call_of(again, run, see)).sum().backward();
    CHECK(finite(again.grad()));
    for (const auto& p : attention->parameters()) CHECK(finite(p.grad()));
  }
}

TEST_CASE("batch-changes-text: greedy decoding alone and beside a longer prompt gives the same tokens", "[cases]") {
  const auto choice = model_choice("encoder_decoder", small_encoder_decoder());
  auto model = make_model(choice);
  torch::NoGradGuard no_grad;
  const auto greedy = [&](const Batch& source) {
    Forward run;
    auto stepper = model->stepper(source, run);
    auto ids = torch::ones({source.source_BS.size(0), 1}, torch::kLong);
    std::vector<Tensor> written;
    for (int i = 0; i < 10; ++i) written.push_back(ids = stepper->step(ids, run).argmax(-1, true));
    return torch::cat(written, 1);
  };
  const auto longer = small_batch();
  const auto together = greedy({longer.source_BS, longer.source_mask_BS, {}, {}});
  const std::vector<int64_t> lengths{6, 4, 5};
  for (int64_t b = 0; b < 3; ++b)
    CHECK(torch::equal(greedy({longer.source_BS.narrow(0, b, 1).narrow(1, 0, lengths[b]), {}, {}, {}}),
                       together.narrow(0, b, 1)));
  CHECK(together.max().item<int64_t>() > together.min().item<int64_t>());  // and they are not all one token
}

TEST_CASE("dropout-in-eval: attention dropout of 0.8 is off in evaluation", "[cases]") {
  auto attention_options = small_attention();
  attention_options.weigh.dropout = 0.8;
  auto model = make_model(model_choice("decoder_only", small_decoder_only(attention_options)));
  const auto batch = small_batch();
  CHECK(torch::equal(logits_of(*model, batch), logits_of(*model, batch)));
  model->train();
  CHECK(!torch::equal(logits_of(*model, batch), logits_of(*model, batch)));
}

TEST_CASE("prune-whole-layer: an attention without heads adds its bias, as the masked model does, and trains on",
          "[cases]") {
  for (const auto& type : {"encoder_decoder", "decoder_only", "encoder_only"}) {
    INFO(type);
    const auto choice = std::string(type) == "encoder_decoder" ? model_choice(type, small_encoder_decoder())
                        : std::string(type) == "decoder_only"  ? model_choice(type, small_decoder_only())
                                                               : model_choice(type, small_encoder_only());
    auto model = make_model(choice);
    const auto batch = small_batch();
    Forward masked;
    HeadTable kept = model->heads();
    masked.scale = model->ones();
    for (auto& [stack, layers] : kept) {
      layers[1].clear();
      masked.scale[stack][1].zero_();
    }
    const auto expected = model->logits(batch, masked);
    model->keep(kept);
    CHECK(difference(logits_of(*model, batch), expected) < 1e-5);
    model->train();
    logits_of(*model, batch).sum().backward();
    for (const auto& p : model->parameters())
      if (p.grad().defined()) CHECK(finite(p.grad()));
    CHECK(text_of(model->heads()) == text_of(kept));
  }
}

TEST_CASE("score-twice: a second importance pass after masking has gradients, 0 where heads are masked", "[cases]") {
  auto model = make_model(model_choice("encoder_decoder", small_encoder_decoder()));
  const auto batch = small_batch();
  auto scale = model->ones();
  for (const int pass : {1, 2}) {
    INFO("pass " << pass);
    std::map<Site, Tensor> z;
    LambdaTap tap([](At at, Site) { return at == At::z; },
                  [&](At, Site site, Tensor value) {
                    value.retain_grad();
                    return z[site] = value;
                  });
    Forward run;
    run.taps = {&tap};
    run.scale = scale;
    for (auto& [stack, ones] : run.scale) ones = ones.detach().clone().requires_grad_();
    smoothed_cross_entropy(model->logits(batch, run).flatten(0, 1), batch.target_BT.flatten(), 0.1).sum.backward();
    for (const auto& [stack, of_stack] : run.scale) {
      REQUIRE(of_stack.grad().defined());
      CHECK(finite(of_stack.grad()));
      const auto importance = (of_stack * of_stack.grad()).detach().abs();
      CHECK(torch::equal(importance.eq(0), scale.at(stack).eq(0)));
    }
    for (const auto& [site, value] : z) CHECK(finite(value.grad()));
    for (auto& [stack, ones] : scale) ones[0][1] = ones[1][3] = 0;
  }
}

TEST_CASE("mask-ignored-on-fast-path: a head mask acts on each path, and masked = removed", "[cases]") {
  auto model = make_model(model_choice("decoder_only", small_decoder_only()));
  const auto batch = small_batch();
  torch::NoGradGuard no_grad;
  LambdaTap weights([](At at, Site) { return at == At::weights; }, [](At, Site, Tensor value) { return value; });
  const auto full = logits_of(*model, batch);
  auto removed = std::dynamic_pointer_cast<Model>(model->clone());
  removed->keep({{Stack::dec_self, {{0, 1, 3}, {0, 1, 2, 3}}}});
  for (const bool instrumented : {false, true}) {
    Forward none, one;
    if (instrumented) none.taps = one.taps = {&weights};
    none.scale[Stack::dec_self] = torch::zeros({2, 4});
    one.scale[Stack::dec_self] = torch::ones({2, 4});
    one.scale[Stack::dec_self][0][2] = 0;
    const auto without = model->logits(batch, none), masked = model->logits(batch, one);
    CHECK(difference(without, full) > 1e-2);
    CHECK(difference(masked, full) > 1e-3);
    CHECK(difference(masked, without) > 1e-3);
    CHECK(difference(masked, logits_of(*removed, batch)) < 1e-5);
  }
}

TEST_CASE("cross-uses-encoder-mask: masks are per stack, whatever heads each stack has", "[cases]") {
  auto options = small_encoder_decoder();
  options.decoder.attention.heads = 2;
  options.decoder.cross_attention.heads = 8;
  auto model = make_model(model_choice("encoder_decoder", options));
  const auto ones = model->ones();
  CHECK(ones.at(Stack::enc_self).sizes() == at::IntArrayRef{2, 4});
  CHECK(ones.at(Stack::dec_self).sizes() == at::IntArrayRef{2, 2});
  CHECK(ones.at(Stack::dec_cross).sizes() == at::IntArrayRef{2, 8});
  const auto batch = small_batch();
  torch::NoGradGuard no_grad;
  for (const auto stack : all_stacks) {
    Forward run;
    run.scale[stack] = torch::zeros_like(ones.at(stack));
    std::map<Site, Tensor> y;
    LambdaTap tap([](At at, Site) { return at == At::y; },
                  [&](At, Site site, Tensor value) { return y[site] = value; });
    run.taps = {&tap};
    model->logits(batch, run);
    for (const auto& [site, value] : y) {
      INFO(to_string(site) << ", masked " << stack_name(stack));
      const auto spread = (value - value.select(1, 0).unsqueeze(1)).abs().max().item<float>();
      CHECK((spread == 0) == (site.stack == stack));  // the bias alone: equal at each position
    }
  }
  Forward wrong;
  wrong.scale[Stack::dec_cross] = torch::ones({2, 4});
  CHECK_THROWS_WITH(model->logits(batch, wrong), ContainsSubstring("dec.cross scale"));
}

TEST_CASE("window-cache: a cache of a windowed attention gives what the full pass gives", "[cases]") {
  constexpr int64_t W = 3;
  auto attention = small_attention();
  attention.gates.items.emplace_back(gate_catalogue, "windows");
  attention.gates.items.back().as<WindowsOptions>().windows = {W, W, 0, 1};
  attention.position.choose("rope");
  auto model = make_model(model_choice("decoder_only", small_decoder_only(attention)));
  torch::NoGradGuard no_grad;
  for (const int64_t length : {W - 1, W, W + 1, 2 * W, 2 * W + 1, 4 * W}) {
    Batch batch;
    batch.target_BT = random_ids({2, length}, small_vocabulary, "target");
    const auto full = logits_of(*model, batch);
    for (int64_t prefill = 1; prefill <= length; ++prefill) {  // longer than W too
      INFO("length " << length << ", prefill " << prefill);
      Forward run;
      auto stepper = model->stepper({}, run);
      auto logits = stepper->step(batch.target_BT.narrow(1, 0, prefill), run);
      CHECK(difference(logits, full.select(1, prefill - 1)) < 1e-5);
      for (int64_t t = prefill; t < length; ++t)
        CHECK(difference(stepper->step(batch.target_BT.narrow(1, t, 1), run), full.select(1, t)) < 1e-5);
    }
  }
}

TEST_CASE("half-overflow: masks are exact in half precision, on both paths", "[cases]") {
  LambdaTap weights([](At at, Site) { return at == At::weights; }, [](At, Site, Tensor value) { return value; });
  for (const auto type : {torch::kBFloat16, torch::kFloat16}) {
    INFO(torch::toString(type));
    auto attention = make_attention(small_attention(), small_width);
    attention->to(type);
    torch::NoGradGuard no_grad;
    auto see = causal();
    see.key_mask_BS = mask_of({5, 3}, 5);
    const auto x = noise({2, 5, small_width}, "x").to(type);
    auto other = x.clone();
    other[1].slice(0, 3).fill_(300);  // padding
    for (const bool instrumented : {false, true}) {
      Forward run;
      if (instrumented) run.taps = {&weights};
      const auto y = attention->forward(call_of(x, run, see)), z = attention->forward(call_of(other, run, see));
      CHECK(y.scalar_type() == type);
      CHECK(finite(y));
      CHECK(torch::equal(y[1].slice(0, 0, 3), z[1].slice(0, 0, 3)));
      see.key_mask_BS = torch::zeros({2, 5}, torch::kBool);
      CHECK(finite(attention->forward(call_of(x, run, see))));
      see.key_mask_BS = mask_of({5, 3}, 5);
    }
  }
}

TEST_CASE("tied-weights: shared matrices are one storage, once in every list, after training, cloning and pruning",
          "[cases]") {
  const auto batch = small_batch();
  for (const auto& [tie, tables] : std::map<std::string, int>{{"all", 1}, {"target", 2}, {"none", 3}}) {
    INFO(tie);
    auto options = small_encoder_decoder();
    options.embedding.tie = tie;
    auto model = make_model(model_choice("encoder_decoder", options));
    const auto check = [&, tables = tables](const Model& any) {
      int found = 0;
      std::set<const void*> storages;
      for (const auto& item : any.named_parameters()) {
        if (item.key().find("tokens") != std::string::npos) ++found;
        if (item.value().numel() > 0) CHECK(storages.insert(item.value().storage().data()).second);
      }
      CHECK(found == tables);
    };
    check(*model);
    model->train();
    logits_of(*model, batch).sum().backward();
    {
      torch::NoGradGuard no_grad;
      for (auto& p : model->parameters()) p.sub_(p.grad(), 0.1);
    }
    check(*model);
    model->keep({{Stack::enc_self, {{0}, {}}}});
    check(*model);
    auto clone = std::dynamic_pointer_cast<Model>(model->clone());
    check(*clone);
    clone->eval();
    model->eval();
    CHECK(torch::equal(logits_of(*clone, batch), logits_of(*model, batch)));
    // The one matrix embeds the source and the target, and makes the logits.
    torch::NoGradGuard no_grad;
    if (tie != "all") continue;
    const auto before = logits_of(*model, batch);
    model->named_parameters()["tokens.weight"].mul_(-1);
    Forward run;
    const auto h = model->hidden(batch, run);
    CHECK(difference(model->logits_of(h, run), -torch::matmul(h, -model->named_parameters()["tokens.weight"].t())) <
          1e-5);
    CHECK(difference(logits_of(*model, batch), before) > 1e-2);
  }
}

TEST_CASE("one vocabulary is needed to share all matrices") {
  ModelContext context{11, 12, {}};
  CHECK_THROWS_WITH(models().make(model_choice("encoder_decoder", small_encoder_decoder()), context),
                    ContainsSubstring("\"all\" expects one vocabulary for source and target, got 11 and 12 tokens"));
  auto options = small_encoder_decoder();
  options.embedding.tie = "target";
  CHECK(models().make(model_choice("encoder_decoder", options), context)->target_vocabulary() == 12);
}

TEST_CASE("an encoder has nothing to generate, and says what has") {
  auto model = make_model(model_choice("encoder_only", small_encoder_only()));
  Forward run;
  CHECK_THROWS_WITH(model->stepper({}, run), ContainsSubstring("use encoder_decoder or decoder_only"));
}

}  // namespace headlab
