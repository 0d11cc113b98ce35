#include "src/export/torchscript.h"

#include <torch/nn/utils/rnn.h>
#include <torch/script.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "modules/attention/gate/adaptive_windows.h"
#include "modules/attention/gate/hard_concrete.h"
#include "modules/attention/gate/heads_by_length.h"
#include "modules/attention/gate/native_sparse.h"
#include "modules/attention/gate/random_windows.h"
#include "modules/attention/gate/role_masks.h"
#include "modules/attention/gate/route_experts.h"
#include "modules/attention/gate/shuffled_windows.h"
#include "modules/attention/gate/windows.h"
#include "modules/attention/mix/capsules.h"
#include "modules/attention/mix/grouped_average.h"
#include "modules/attention/position/adarope.h"
#include "modules/attention/position/alibi.h"
#include "modules/attention/position/offset.h"
#include "modules/attention/position/rope.h"
#include "modules/attention/project/collaborative.h"
#include "modules/attention/project/decoupled.h"
#include "modules/attention/project/fuse_groups.h"
#include "modules/attention/project/head_embeddings.h"
#include "modules/attention/project/knocking.h"
#include "modules/attention/project/mix_heads.h"
#include "modules/attention/project/persistent.h"
#include "modules/attention/project/simulated.h"
#include "modules/attention/project/standard.h"
#include "modules/mixer/heads_by_length.h"
#include "modules/mixer/ngram.h"
#include "modules/mixer/ngram_and_attention.h"
#include "modules/tensor/torch.h"
#include "src/decode/translate.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/scratch.h"
#include "tests/support/skip.h"
#include "tests/support/translators.h"

namespace headlab {
namespace {

/// Options of self-attentions (`cross` false) and cross-attentions that exercise an entry of a slot.
struct Variant {
  std::string name;
  std::function<void(AttentionOptions&, bool cross)> tweak;
};

template <class T>
Choice choice(Choice::Source source, const std::string& type, const std::function<void(T&)>& set) {
  Choice made(source, type);
  set(made.as<T>());
  return made;
}

Choice windows(std::vector<int64_t> widths) {
  return choice<WindowsOptions>(gate_catalogue, "windows", [&](auto& options) { options.windows = widths; });
}
Choice grouped(int64_t groups) {
  return choice<GroupedProjectOptions>(project_catalogue, "grouped", [&](auto& options) { options.groups = groups; });
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all{
      {"plain", [](auto&, bool) {}},
      {"grouped, rope",
       [](auto& o, bool cross) {
         o.project = grouped(2);
         if (!cross) o.position.choose("rope");
       }},
      {"knocking heads over groups, a linear one and an mlp, with rope",
       [](auto& o, bool cross) {
         o.project = grouped(2);
         o.then.items.push_back(
             choice<KnockingOptions>(adapter_catalogue, "knocking", [](auto& its) { its.on = {"q", "k"}; }));
         o.then.items.push_back(
             choice<KnockingOptions>(adapter_catalogue, "knocking", [](auto& its) { its.kind = "mlp"; }));
         if (!cross) o.position.choose("rope");
       }},
      {"decoupled heads, with rope",
       [](auto& o, bool cross) {
         o.project = choice<DecoupledProjectOptions>(project_catalogue, "decoupled", [](auto& its) {
           its.k_map = {0, 0, 1, 1};
           its.v_map = {0, 1, 1, 2};
         });
         if (!cross) o.position.choose("rope");
       }},
      {"heads that fuse",
       [](auto& o, bool) {
         o.then.items.push_back(
             choice<FuseGroupsOptions>(adapter_catalogue, "fuse_groups", [](auto& its) { its.k_map = {0, 1, 1, 0}; }));
       }},
      {"mixed heads over one group",
       [](auto& o, bool) {
         o.project = grouped(1);
         o.then.items.emplace_back(adapter_catalogue, "mix_heads");
       }},
      {"one window",
       [](auto& o, bool cross) {
         if (!cross) o.gates.items.push_back(windows({3}));
       }},
      {"windows and groups of unequal size",
       [](auto& o, bool cross) {
         o.project = grouped(2);
         if (!cross) o.gates.items.push_back(windows({2, 0, 5, 2}));
       }},
      {"drawn windows and groups",
       [](auto& o, bool cross) {
         o.project = grouped(2);
         if (!cross)
           o.gates.items.push_back(
               choice<RandomWindowsOptions>(gate_catalogue, "random_windows", [](auto& its) { its.set = {2, 0, 5}; }));
       }},
      {"dealt windows",
       [](auto& o, bool cross) {
         if (!cross)
           o.gates.items.push_back(choice<ShuffledWindowsOptions>(gate_catalogue, "shuffled_windows",
                                                                  [](auto& its) { its.windows = {2, 0, 5, 2}; }));
       }},
      {"windows that adapt",
       [](auto& o, bool cross) {
         if (!cross)
           o.gates.items.push_back(choice<AdaptiveWindowsOptions>(gate_catalogue, "adaptive_windows", [](auto& its) {
             its.set = {2, 5};
             its.controller_grad = "ste";
           }));
       }},
      {"gates in series",
       [](auto& o, bool) {
         for (const auto* gate : {"hard_concrete", "head_norm", "scalar"})
           o.gates.items.emplace_back(gate_catalogue, gate);
       }},
      {"half rope, narrow values, an additive score, an output of low rank",
       [](auto& o, bool cross) {
         o.mix.choose("low_rank");
         o.head_width = 8;
         o.value_width = 3;
         if (cross) o.weigh.score.choose("additive");
         if (!cross) {
           o.position = choice<RopeOptions>(position_catalogue, "rope", [](auto& rope) {
             rope.fraction = 0.5;
             rope.scaling = "ntk";
             rope.factor = 2;
           });
         }
       }},
      {"frequencies of each group, scores that grow, importances of heads",
       [](auto& o, bool cross) {
         o.project = grouped(2);
         o.gates.items.emplace_back(gate_catalogue, "dynamic_importance");
         if (cross) return;
         o.position = choice<AdaRopeOptions>(position_catalogue, "adarope", [](auto& own) {
           own.train_length = 4;
           own.growth = 0.3;
         });
       }},
      {"frequencies of all attentions of the model",
       [](auto& o, bool cross) {
         if (!cross)
           o.position = choice<AdaRopeOptions>(position_catalogue, "adarope", [](auto& own) { own.share = "model"; });
       }},
      {"learned alibi, wide values, groups and windows",
       [](auto& o, bool cross) {
         o.project = grouped(2);
         o.value_width = 6;
         if (cross) return;
         o.gates.items.push_back(windows({2, 0, 5, 2}));
         o.position = choice<AlibiOptions>(position_catalogue, "alibi", [](auto& alibi) {
           alibi.learned = true;
           alibi.bias = "inside";
         });
       }},
      {"heads that training kept apart",
       [](auto& o, bool) { o.gates.items.emplace_back(gate_catalogue, "diversity"); }},
      {"sparsemax over windows",
       [](auto& o, bool cross) {
         o.weigh.normalise.choose("sparsemax");
         if (!cross) o.gates.items.push_back(windows({2, 0, 5, 2}));
       }},
      {"heads that look at one place",
       [](auto& o, bool cross) {
         if (!cross)
           o.position = choice<OffsetOptions>(position_catalogue, "offset",
                                              [&](auto& options) { options.offsets = {0, 1, 3, 0}; });
       }},
      {"routed experts, one shared",
       [](auto& o, bool) {
         o.project.choose("experts");
         o.gates.items.push_back(
             choice<RouteExpertsOptions>(gate_catalogue, "route_experts", [](auto& options) { options.shared = 1; }));
         o.mix.choose("experts");
       }},
      {"persistent vectors over groups and windows, with rope",
       [](auto& o, bool cross) {
         o.project = grouped(2);
         o.then.items.push_back(
             choice<PersistentOptions>(adapter_catalogue, "persistent", [](auto& own) { own.vectors = 3; }));
         if (cross) return;
         o.position.choose("rope");
         o.gates.items.push_back(windows({2, 0, 5, 2}));
       }},
      {"relative positions beside persistent vectors, rounded gates",
       [](auto& o, bool cross) {
         o.then.items.push_back(
             choice<PersistentOptions>(adapter_catalogue, "persistent", [](auto& own) { own.vectors = 3; }));
         if (!cross) o.position.choose("transformer_xl");
         o.gates.items.emplace_back(gate_catalogue, "l0_round");
       }},
      {"heads by embeddings, with rope over the cache",
       [](auto& o, bool cross) {
         o.project.choose("head_embeddings");
         if (!cross) o.position.choose("rope");
       }},
      {"heads by embeddings that are added, mixed and averaged",
       [](auto& o, bool) {
         o.project = choice<HeadEmbeddingsOptions>(project_catalogue, "head_embeddings",
                                                   [](auto& options) { options.op = "add"; });
         o.then.items.emplace_back(adapter_catalogue, "mix_heads");
         o.mix = choice<GroupedAverageOptions>(mix_catalogue, "grouped_average",
                                               [](auto& options) { options.concatenated = 2; });
       }},
      {"collaborative heads, with rope",
       [](auto& o, bool cross) {
         o.project.choose("collaborative");
         o.head_width = 6;
         o.value_width = 4;
         if (!cross) o.position.choose("rope");
       }},
      {"collaborative heads without biases, over windows",
       [](auto& o, bool cross) {
         o.project = choice<CollaborativeOptions>(project_catalogue, "collaborative",
                                                  [](auto& options) { options.content_bias = options.bias = false; });
         if (!cross) o.gates.items.push_back(windows({2, 0, 5, 2}));
       }},
      {"simulated heads, with rope",
       [](auto& o, bool cross) {
         o.project.choose("simulated");
         o.head_width = 6;
         o.value_width = 8;
         if (!cross) o.position.choose("rope");
       }},
      {"simulated heads over a cache of components, with rope and windows",
       [](auto& o, bool cross) {
         o.project =
             choice<SimulatedOptions>(project_catalogue, "simulated", [](auto& options) { options.cache = "raw"; });
         if (cross) return;
         o.position.choose("rope");
         o.gates.items.push_back(windows({2, 0, 5, 2}));
       }},
      {"heads that agree on capsules",
       [](auto& o, bool cross) { o.mix.choose(cross ? "em_agreement" : "dynamic_agreement"); }},
      {"capsules beside W_O, and in its place over narrow values",
       [](auto& o, bool cross) {
         o.mix.choose("dynamic_capsules");
         if (!cross) return;
         o.value_width = 3;
         o.mix = choice<EmCapsulesOptions>(mix_catalogue, "em_capsules", [](auto& its) {
           its.merge = "replace";
           its.capsules = 3;
         });
       }},
      {"heads that keep some tokens, over groups, at places of their own, beside a shared one",
       [](auto& o, bool cross) {
         if (cross) return;
         o.project = grouped(2);
         o.position.choose("rope");
         o.gates.items.push_back(choice<NativeSparseOptions>(gate_catalogue, "native_sparse", [](auto& its) {
           its.active = its.shared = 1;
           its.window = 3;
           its.balance = "loss_free";
         }));
       }},
      {"routed experts",
       [](auto& o, bool) {
         o.project.choose("experts");
         o.gates.items.emplace_back(gate_catalogue, "route_experts");
         o.mix.choose("experts");
       }},
  };
  return all;
}

std::shared_ptr<EncoderDecoder> varied(const Variant& variant,
                                       const std::function<void(EncoderDecoderOptions&)>& tweak = {}) {
  return translator([&](EncoderDecoderOptions& options) {
    variant.tweak(options.encoder.attention, false);
    variant.tweak(options.decoder.attention, false);
    variant.tweak(options.decoder.cross_attention, true);
    if (tweak) tweak(options);
  });
}

void one_layer(EncoderDecoderOptions& options) { options.encoder.layers = options.decoder.layers = 1; }

ExportReport exported(Model& model, const std::filesystem::path& path, ExportOptions options = {}) {
  options.sentences = sentences({4, 9, 2, 16}, 7);
  return export_torchscript(model, path, options);
}

/// What `full` of a file gives for a batch.
Tensor full(torch::jit::Module& file, const Batch& batch) {
  auto mask = batch.source_mask_BS;
  if (!mask.defined()) mask = torch::ones_like(batch.source_BS, torch::kBool);
  return file.get_method("full")({batch.source_BS, mask, batch.target_BT}).toTensor();
}

Batch batch_of(int64_t B, int64_t S, int64_t T) {
  Batch batch;
  const auto name = std::to_string(B) + "," + std::to_string(S) + "," + std::to_string(T);
  batch.source_BS = random_ids({B, S}, translator_vocabulary, "source" + name);
  batch.source_mask_BS = torch::arange(S).unsqueeze(0).lt(torch::arange(S, S - B, -1).clamp_min(1).unsqueeze(1));
  batch.target_BT = random_ids({B, T}, translator_vocabulary, "target" + name);
  return batch;
}

std::vector<std::vector<int64_t>> rows_of(const Tensor& ids_BT, int64_t pad = 0) {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t b = 0; b < ids_BT.size(0); ++b) {
    auto& row = rows.emplace_back();
    for (int64_t t = 0; t < ids_BT.size(1) && ids_BT[b][t].item<int64_t>() != pad; ++t)
      row.push_back(ids_BT[b][t].item<int64_t>());
  }
  return rows;
}

Tensor padded(const std::vector<std::vector<int64_t>>& texts) {
  std::vector<Tensor> rows;
  for (const auto& text : texts) rows.push_back(torch::tensor(text, torch::kLong));
  return torch::nn::utils::rnn::pad_sequence(rows, /*batch_first=*/true, 0);
}

std::string text_of(torch::jit::Module& file, const std::string& method) {
  return file.get_method(method).graph()->toString(false);
}

}  // namespace

TEST_CASE("traced-shape: an exported file equals the model at any batch size and length, for every entry", "[cases]") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  for (const auto& variant : variants()) {
    INFO(variant.name);
    const auto model = varied(variant, one_layer);
    const auto report = exported(*model, scratch / "model.pt");
    CHECK(report.bytes == static_cast<int64_t>(std::filesystem::file_size(scratch / "model.pt")));
    CHECK(report.max_difference < 1e-4);
    CHECK(report.sentences_compared >= 4);
    auto file = torch::jit::load((scratch / "model.pt").string());
    for (const auto& [B, S, T] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {4, 28, 7}, {2, 7, 40}, {3, 3, 3}}) {
      const auto batch = batch_of(B, S, T);
      CHECK(difference(full(file, batch), logits_of(*model, batch)) < 1e-4);
    }
    for (const auto* method : {"recorded_encode", "recorded_full", "recorded_begin", "recorded_step"})
      CHECK_THAT(text_of(file, method), !ContainsSubstring("Device"));  // device-frozen
  }
}

TEST_CASE("every entry of every slot of an attention is among the exported ones") {
  std::map<std::string, std::set<std::string>> used;
  const auto use = [&](const Choice& choice) { used[choice.catalogue().slot].insert(choice.type()); };
  for (const auto& variant : variants()) {
    for (const bool cross : {false, true}) {
      AttentionOptions options;
      options.heads = 4;
      variant.tweak(options, cross);
      for (const auto* one :
           {&options.project, &options.position, &options.mix, &options.weigh.score, &options.weigh.normalise})
        use(*one);
      for (const auto* list : {&options.then, &options.gates})
        for (const auto& one : list->items) use(one);
    }
  }
  for (const auto* catalogue : {&project_catalogue(), &adapter_catalogue(), &position_catalogue(), &score_catalogue(),
                                &normalise_catalogue(), &gate_catalogue(), &mix_catalogue()})
    for (const auto& name : catalogue->names()) {
      if (name == "role_masks" || name == "heads_by_length") continue;  // tests of their own, below
      INFO(catalogue->slot << " " << name);
      CHECK(used[catalogue->slot].count(name) == 1);
    }
}

TEST_CASE(
    "maps of knocking heads are absorbed: the file computes and carries what the plain model's does, with the live "
    "model's logits") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  const auto knocking = [](auto& o, bool cross) {
    o.project = grouped(2);
    o.then.items.push_back(
        choice<KnockingOptions>(adapter_catalogue, "knocking", [](auto& its) { its.on = {"q", "k", "v"}; }));
    if (!cross) o.position.choose("rope");
  };
  const auto live = varied({"", knocking}), plain = varied({"", [&](auto& o, bool cross) {
                                                              knocking(o, cross);
                                                              o.then.items.clear();
                                                            }});
  const auto file_of = [&](Model& model, bool absorb) {
    ExportOptions options;
    options.absorb = absorb;
    exported(model, scratch / "model.pt", options);
    return torch::jit::load((scratch / "model.pt").string());
  };
  const auto operations = [](torch::jit::Module& file, const std::string& method) {
    std::string kinds;
    for (const auto* node : file.get_method(method).graph()->nodes())
      kinds += std::string(node->kind().toQualString()) + "\n";
    return kinds;
  };
  const auto parameters = [](torch::jit::Module& file) {
    std::map<std::string, std::string> shapes;
    for (const auto& item : file.named_parameters()) shapes[item.name] = shape_text(item.value);
    return shapes;
  };
  auto absorbed = file_of(*live, true), as_it_is = file_of(*live, false), of_plain = file_of(*plain, true);
  for (const auto* method : {"recorded_encode", "recorded_full", "recorded_begin", "recorded_step"}) {
    CHECK(operations(absorbed, method) == operations(of_plain, method));
    CHECK(operations(as_it_is, method) != operations(of_plain, method));
  }
  CHECK(parameters(absorbed) == parameters(of_plain));
  CHECK(parameters(as_it_is).size() > parameters(of_plain).size());
  const auto batch = batch_of(3, 8, 12);
  const auto expected = logits_of(*live, batch);
  CHECK(difference(full(absorbed, batch), expected) < 1e-5);
  CHECK(difference(full(as_it_is, batch), expected) < 1e-5);
  CHECK(difference(full(of_plain, batch), expected) > 1e-2);
}

TEST_CASE("heads by the length of a text are exported, as gates and as attentions of their own") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  for (const bool separate : {false, true}) {
    const auto model = translator([&](EncoderDecoderOptions& options) {
      if (separate) {
        options.encoder.mixer = choice<SeparateHeadsOptions>(mixer_catalogue, "heads_by_length", [](auto& its) {
          its.heads = {1, 2, 4};
          its.thresholds = {3, 8};
        });
      } else {
        options.encoder.attention.gates.items.push_back(
            choice<HeadsByLengthOptions>(gate_catalogue, "heads_by_length", [](auto& its) {
              its.heads = {1, 2, 4};
              its.thresholds = {3, 8};
            }));
      }
    });
    exported(*model, scratch / "model.pt");
    auto file = torch::jit::load((scratch / "model.pt").string());
    for (const auto& [B, S, T] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {4, 28, 7}, {4, 10, 4}, {3, 3, 3}}) {
      const auto batch = batch_of(B, S, T);
      CHECK(difference(full(file, batch), logits_of(*model, batch)) < 1e-4);
    }
    for (const auto* method : {"recorded_encode", "recorded_full"})
      CHECK_THAT(text_of(file, method), !ContainsSubstring("Device"));
  }
}

TEST_CASE("a model whose heads follow roles is not exported: nothing tells them there") {
  const Scratch scratch;
  const auto model = translator([](EncoderDecoderOptions& options) {
    options.encoder.attention.gates.items.push_back(
        choice<RoleMasksOptions>(gate_catalogue, "role_masks", [](auto& masks) { masks.roles = {"rare"}; }));
  });
  CHECK_THROWS_WITH(exported(*model, scratch / "model.pt"),
                    ContainsSubstring("nothing says which keys belong to the role \"rare\""));
  CHECK(!std::filesystem::exists(scratch / "model.pt"));
}

TEST_CASE("other layers, norms, ties and positions export as well") {
  const torch::NoGradGuard no_grad;
  const DefaultDtype in_double(torch::kFloat64);  // without norms, numbers get large
  const Scratch scratch;
  const std::vector<std::function<void(EncoderDecoderOptions&)>> tweaks{
      [](auto& o) {
        o.residual.choose("post");
        o.embedding.tie = "target";
        o.encoder.feed_forward.choose("gelu");
      },
      [](auto& o) {
        o.embedding.tie = "none";
        o.embedding.position.choose("none");
        o.embedding.scale = false;
        o.norm.choose("none");
        o.encoder.layers = 1;
        o.decoder.layers = 3;
        o.dropout = 0.5;
      },
      [](auto& o) {
        o.residual.choose("sandwich");
        o.norm.choose("rms_norm");
        o.embedding.tie = "target";
        o.embedding.position.choose("learned");
        o.encoder.d_model = 12;
        o.encoder.feed_forward.choose("swiglu");
        o.dropout_kind = "token";
        o.embedding.dropout = 0.3;
      },
      [](auto& o) {
        o.norm.choose("min_max");
        LayerOverride first;
        first.layers = {0};
        first.attention = o.encoder.attention;
        first.attention.heads = 2;
        first.attention.position.choose("alibi");
        first.feed_forward.choose("swiglu");
        o.encoder.per_layer = {first};
        CrossLayerOverride last;
        last.layers = {1};
        last.attention = o.decoder.attention;
        last.attention.value_width = 5;
        last.cross_attention = o.decoder.cross_attention;
        last.cross_attention.heads = 8;
        last.feed_forward = o.decoder.feed_forward;
        o.decoder.per_layer = {last};
      },
      [](auto& o) {
        o.residual.choose("admin");
        for (auto* mixer : {&o.encoder.mixer, &o.decoder.mixer}) {
          mixer->choose("ngram");
          mixer->template as<NgramOptions>().heads = 4;
          mixer->template as<NgramOptions>().activation = "relu";
        }
      },
      [](auto& o) {
        for (auto* mixer : {&o.encoder.mixer, &o.decoder.mixer}) {
          mixer->choose("ngram_and_attention");
          mixer->template as<NgramAndAttentionOptions>().heads = 1;
        }
        o.encoder.attention.position.choose("alibi");
        o.decoder.attention.position.choose("rope");
      },
  };
  for (const auto& tweak : tweaks) {
    const auto model = translator(tweak);
    exported(*model, scratch / "model.pt");
    auto file = torch::jit::load((scratch / "model.pt").string());
    const auto batch = batch_of(3, 8, 12);
    const auto expected = logits_of(*model, batch);
    CHECK(difference(full(file, batch), expected) < 1e-10 * std::max(1.0, expected.abs().max().item<double>()));
  }
}

TEST_CASE("a float64 model is exported as float64") {
  const torch::NoGradGuard no_grad;
  const DefaultDtype in_double(torch::kFloat64);
  const Scratch scratch;
  for (const std::size_t each : {0, 6, 8}) {  // what makes numbers of its own: positions, biases, routers
    const auto& variant = variants()[each];
    INFO(variant.name);
    const auto model = varied(variant, one_layer);
    CHECK(exported(*model, scratch / "model.pt").max_difference < 1e-11);
    auto file = torch::jit::load((scratch / "model.pt").string());
    const auto batch = batch_of(2, 13, 5);
    const auto logits = full(file, batch);
    CHECK(logits.scalar_type() == torch::kFloat64);
    CHECK(difference(logits, logits_of(*model, batch)) < 1e-11);
  }
}

TEST_CASE("prune-whole-layer: a model pruned unevenly, whole layers included, is exported with what is left",
          "[cases]") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  for (const auto& variant : variants()) {
    INFO(variant.name);
    const auto model = varied(variant);
    const bool plain = &variant == &variants().front();
    if (plain) exported(*model, scratch / "whole.pt");
    model->keep(
        {{Stack::enc_self, {{1, 3}, {}}}, {Stack::dec_self, {{}, {0, 2, 3}}}, {Stack::dec_cross, {{2}, {0, 1}}}});
    exported(*model, scratch / "pruned.pt");
    if (plain)
      CHECK(std::filesystem::file_size(scratch / "pruned.pt") < std::filesystem::file_size(scratch / "whole.pt"));
    auto file = torch::jit::load((scratch / "pruned.pt").string());
    const auto batch = batch_of(4, 9, 6);
    CHECK(difference(full(file, batch), logits_of(*model, batch)) < 1e-4);
    model->keep({{Stack::enc_self, {{}, {}}}, {Stack::dec_self, {{}, {}}}, {Stack::dec_cross, {{}, {}}}});
    if (plain || &variant == &variants().back()) exported(*model, scratch / "none.pt");
  }
}

TEST_CASE("translate_ids of a file gives the texts that the search gives") {
  const DefaultDtype in_double(torch::kFloat64);
  const Scratch scratch;
  const auto sources = sentences({3, 9, 1, 0, 12, 5, 3, 17}, 11);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto model = translator({}, seed);
    ExportOptions options;
    options.search.beam = 3;
    options.search.max_length_factor = 1.5;
    options.search.max_length_extra = 4;
    exported(*model, scratch / "model.pt", options);
    auto file = torch::jit::load((scratch / "model.pt").string());
    for (const int64_t beam : {1, 2, 5}) {
      for (const double alpha : {0.0, 1.0}) {
        for (const int64_t max_length : {0, 6}) {
          auto search = options.search;
          search.beam = beam;
          search.length_penalty = alpha;
          search.max_length = max_length;
          Forward run;
          std::vector<std::vector<int64_t>> expected;
          for (const auto& found : translate_ids(*model, sources, {}, {}, search, 1000, run))
            expected.push_back(found[0].ids);
          CHECK(rows_of(file.get_method("translate_ids")({padded(sources), beam, alpha, max_length}).toTensor()) ==
                expected);
        }
      }
    }
    Forward run;
    std::vector<std::vector<int64_t>> by_default;
    for (const auto& found : translate_ids(*model, sources, {}, {}, options.search, 1000, run))
      by_default.push_back(found[0].ids);
    CHECK(rows_of(file.get_method("translate_ids")({padded(sources)}).toTensor()) == by_default);
    CHECK(file.get_method("translate_ids")({padded(sources).narrow(0, 0, 0)}).toTensor().size(0) == 0);
  }
}

TEST_CASE("an exported search breaks ties as the search does") {
  // Tokens 5 to 9 share one embedding and so are always equally probable.
  const DefaultDtype in_double(torch::kFloat64);
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  const auto model = translator({}, 5);
  for (auto& item : model->named_parameters())
    if (item.key() == "tokens.weight")
      for (int64_t id = 6; id < 10; ++id) item.value()[id].copy_(item.value()[5]);
  const auto sources = sentences({3, 9, 6, 12, 5}, 3);
  exported(*model, scratch / "model.pt");
  auto file = torch::jit::load((scratch / "model.pt").string());
  for (const int64_t beam : {1, 2, 4, 30}) {
    SearchOptions search;
    search.beam = beam;
    search.max_length = 8;
    Forward run;
    std::vector<std::vector<int64_t>> expected;
    for (const auto& found : translate_ids(*model, sources, {}, {}, search, 1000, run))
      expected.push_back(found[0].ids);
    CHECK(rows_of(file.get_method("translate_ids")({padded(sources), beam, 0.6, 8}).toTensor()) == expected);
  }
}

TEST_CASE("tied-weights: a matrix that is shared is stored once", "[cases]") {
  const Scratch scratch;
  const auto size = [&](const std::string& tie) {
    const auto model = translator([&](auto& options) {
      one_layer(options);
      options.embedding.tie = tie;
      options.d_model = 256;
    });
    return exported(*model, scratch / "model.pt").bytes;
  };
  constexpr int64_t matrix = translator_vocabulary * 256 * 4;
  const auto all = size("all");
  CHECK(std::abs(size("none") - all - 2 * matrix) < 4096);
  CHECK(std::abs(size("target") - all - matrix) < 4096);
}

TEST_CASE("gates that are constant at inference are folded") {
  const Scratch scratch;
  const auto model = varied(variants()[5]);
  exported(*model, scratch / "model.pt");
  auto file = torch::jit::load((scratch / "model.pt").string());
  for (const auto* method : {"recorded_full", "recorded_step"}) {
    CHECK_THAT(text_of(file, method), !ContainsSubstring("aten::sigmoid"));
    CHECK_THAT(text_of(file, method), !ContainsSubstring("aten::dropout"));
  }
}

TEST_CASE("export leaves the model's modes and gradients as they were") {
  const Scratch scratch;
  const auto model = translator();
  model->train();
  exported(*model, scratch / "model.pt");
  CHECK(model->is_training());
  for (const auto& parameter : model->parameters()) CHECK(parameter.requires_grad());
  auto file = torch::jit::load((scratch / "model.pt").string());
  for (const auto& parameter : file.parameters()) CHECK_FALSE(parameter.requires_grad());
}

TEST_CASE("the files given to an export are in the archive, byte for byte") {
  const Scratch scratch;
  ExportOptions options;
  options.files = {{"spec.json", "{\"name\": \"größer\"}"}, {"tokenizer.model", std::string("\0\xff\n\r\0", 5)}};
  exported(*translator(), scratch / "model.pt", options);
  torch::jit::ExtraFilesMap files{{"spec.json", ""}, {"tokenizer.model", ""}};
  torch::jit::load((scratch / "model.pt").string(), std::nullopt, files);
  for (const auto& [name, bytes] : options.files) CHECK(files[name] == bytes);
}

TEST_CASE("a file whose answers are not the model's is not written") {
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  const auto model = translator();
  model->parameters().front().fill_(NAN);
  CHECK_THROWS_WITH(exported(*model, scratch / "model.pt"),
                    ContainsSubstring("export: full at batch 1, source length 3, target length 4") &&
                        ContainsSubstring("nothing was written"));
  CHECK_FALSE(std::filesystem::exists(scratch / "model.pt"));
}

TEST_CASE("only encoder-decoders are exported as translators") {
  const Scratch scratch;
  CHECK_THROWS_AS(exported(*storyteller(), scratch / "model.pt"), UsageError);
}

TEST_CASE("too-long: an exported file says which length it takes", "[cases]") {
  const Scratch scratch;
  exported(*translator(), scratch / "model.pt");
  auto file = torch::jit::load((scratch / "model.pt").string());
  CHECK_THROWS_WITH(full(file, batch_of(1, 65, 3)), ContainsSubstring("source: expected at most 64 tokens, got 65"));
  CHECK_THROWS_WITH(full(file, batch_of(1, 3, 65)), ContainsSubstring("target: expected at most 64 tokens, got 65"));
  CHECK_THROWS_WITH(file.get_method("translate_ids")({padded(sentences({5}, 1)), 0, 0.6, 0}),
                    ContainsSubstring("beam: expected 1 (greedy) or more, got 0"));
}

TEST_CASE("Python with torch alone gives the same translations and logits", "[python]") {
  if (test::skipped(test::python().empty(),
                    "no Python with torch: set HEADLAB_PYTHON to one, or let tools/headlab make .deps/venv"))
    return;
  const torch::NoGradGuard no_grad;
  const Scratch scratch;
  nlohmann::json cases = nlohmann::json::array();
  const auto sources = sentences({3, 9, 1, 12, 5, 3, 17}, 13);
  std::size_t number = 0;
  for (const std::size_t each : {0, 4, 6, 8}) {
    const auto model = varied(variants()[each]);
    if (number % 2 == 1)
      model->keep(
          {{Stack::enc_self, {{1, 3}, {}}}, {Stack::dec_self, {{}, {0, 2, 3}}}, {Stack::dec_cross, {{2}, {0, 1}}}});
    const auto path = scratch / ("model" + std::to_string(number++) + ".pt");
    exported(*model, path);
    const auto batch = batch_of(3, 10, 6);
    const auto logits = logits_of(*model, batch).flatten().contiguous();
    nlohmann::json one{{"file", path.string()}, {"sources", sources}, {"translations", nlohmann::json::object()}};
    one["logits"] = std::vector<double>(logits.data_ptr<float>(), logits.data_ptr<float>() + logits.numel());
    const auto lists = [&](const Tensor& ids) {
      std::vector<std::vector<int64_t>> rows;
      for (int64_t b = 0; b < ids.size(0); ++b) {
        const auto row = ids[b].to(torch::kLong).contiguous();
        rows.emplace_back(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + row.numel());
      }
      return rows;
    };
    one["source"] = lists(batch.source_BS);
    one["mask"] = lists(batch.source_mask_BS);
    one["target"] = lists(batch.target_BT);
    for (const int64_t beam : {1, 4}) {
      SearchOptions search;
      search.beam = beam;
      Forward run;
      std::vector<std::vector<int64_t>> expected;
      for (const auto& found : translate_ids(*model, sources, {}, {}, search, 1000, run))
        expected.push_back(found[0].ids);
      one["translations"][std::to_string(beam)] = expected;
    }
    cases.push_back(one);
  }
  std::ofstream(scratch / "cases.json") << cases;
  const auto command = "\"" + test::python() + "\" \"" + test::in_source("tests/export/check_export.py") + "\" \"" +
                       (scratch / "cases.json").string() + "\"";
  CHECK(std::system(command.c_str()) == 0);
}

}  // namespace headlab
