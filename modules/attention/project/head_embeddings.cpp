#include "modules/attention/project/head_embeddings.h"

#include "modules/tensor/relevance.h"
#include "modules/tensor/torch.h"

namespace headlab {

void HeadEmbeddingsOptions::describe(Fields& fields) {
  fields
      .add("op", op,
           "what a head's vectors do to the shared query, key and value: add to them, or multiply them by 1 + vector")
      .one_of({"add", "mul"});
  fields.add("deviation", deviation, "standard deviation of the vectors at the start").at_least(0);
  fields.add("bias", bias, "add a learned bias to the shared query, key and value");
}

HeadEmbeddings::HeadEmbeddings(const HeadEmbeddingsOptions& options, Shape shape)
    : adds_(options.op == "add"), deviation_(options.deviation), shape_(std::move(shape)) {
  set_groups(*shape_, shape_->original_heads);
  const auto K = shape_->head_width, V = shape_->value_width;
  query_weight = register_parameter("query_weight", torch::empty({K, shape_->width}));
  memory_weight = register_parameter("memory_weight", torch::empty({K + V, shape_->memory_width}));
  if (options.bias) {
    query_bias = register_parameter("query_bias", torch::zeros({K}));
    memory_bias = register_parameter("memory_bias", torch::zeros({K + V}));
  }
  query_embedding = register_parameter("query_embedding", torch::empty({shape_->H(), K}));
  key_embedding = register_parameter("key_embedding", torch::empty({shape_->G(), K}));
  value_embedding = register_parameter("value_embedding", torch::empty({shape_->G(), V}));
}

void HeadEmbeddings::draw(const std::function<at::Generator(const std::string&)>& generator) {
  // Each head's matrix starts as one of H matrices of its own would.
  const auto H = shape_->original_heads, K = shape_->head_width, V = shape_->value_width;
  xavier_uniform(query_weight, shape_->width, H * K, generator("query_weight"));
  const auto memory = generator("memory_weight");
  xavier_uniform(memory_weight.narrow(0, 0, K), shape_->memory_width, H * K, memory);
  xavier_uniform(memory_weight.narrow(0, K, V), shape_->memory_width, H * V, memory);
  for (const auto& bias : {query_bias, memory_bias})
    if (bias.defined()) bias.zero_();
  const auto normal = [&](Tensor embedding, const std::string& name) {
    embedding.copy_(torch::empty(embedding.sizes(), torch::kFloat64).normal_(0, deviation_, generator(name)));
  };
  normal(query_embedding, "query_embedding");
  normal(key_embedding, "key_embedding");
  normal(value_embedding, "value_embedding");
}

Tensor HeadEmbeddings::of_heads(const Tensor& x_BTK, const Tensor& embedding_HK) const {
  const auto x_B1TK = x_BTK.unsqueeze(1);
  const auto e_H1K = embedding_HK.unsqueeze(1).to(x_BTK.scalar_type());
  const auto y_BHTK = adds_ ? x_B1TK + e_H1K : x_B1TK * (1 + e_H1K);
  return relevance::flows() ? relevance::through(x_B1TK.expand_as(y_BHTK), y_BHTK) : y_BHTK;
}

Tensor HeadEmbeddings::query(const Tensor& x_BTD, const HeadPlan&) {
  return of_heads(relevance::linear(x_BTD, query_weight, query_bias), query_embedding);
}

std::vector<Tensor> HeadEmbeddings::remember(const Tensor& memory_BSD) {
  const auto both = relevance::linear(memory_BSD, memory_weight, memory_bias).unsqueeze(1);
  return both.split_with_sizes({shape_->head_width, shape_->value_width}, -1);
}

std::vector<Tensor> HeadEmbeddings::read(const std::vector<Tensor>& stored) {
  return {of_heads(stored[0].squeeze(1), key_embedding), of_heads(stored[1].squeeze(1), value_embedding)};
}

bool HeadEmbeddings::absorb(const std::vector<Tensor>& maps_qkv) {
  if (!adds_) return false;
  const auto K = shape_->head_width, V = shape_->value_width;
  const auto times = [](Tensor rows, Tensor bias, Tensor embedding, const Tensor& map) {
    if (!map.defined()) return;
    rows.copy_(torch::matmul(map.t(), rows));
    if (bias.defined()) bias.copy_(torch::matmul(bias, map));
    embedding.copy_(torch::matmul(embedding, map));
  };
  const auto part = [&](const Tensor& bias, int64_t first, int64_t count) {
    return bias.defined() ? bias.narrow(0, first, count) : bias;
  };
  times(query_weight, query_bias, query_embedding, maps_qkv[0]);
  times(memory_weight.narrow(0, 0, K), part(memory_bias, 0, K), key_embedding, maps_qkv[1]);
  times(memory_weight.narrow(0, K, V), part(memory_bias, K, V), value_embedding, maps_qkv[2]);
  return true;
}

void HeadEmbeddings::axes(HeadAxes axes) const {
  axes.head("query_embedding", 0, 1);
  axes.group("key_embedding", 0, 1);
  axes.group("value_embedding", 0, 1);
}

int64_t HeadEmbeddings::flops(int64_t T, int64_t S, int64_t) const {
  return 2 * T * query_weight.numel() + 2 * S * memory_weight.numel();
}

}  // namespace headlab
