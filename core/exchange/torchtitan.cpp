#include "base/quantities.h"
#include "exchange/formats.h"
#include "exchange/layer_table.h"
#include "exchange/notes.h"
#include "exchange/styles.h"
#include "plan/text/block_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

/// Sharding configs of torchtitan (0.3: models/common/decoder_sharding.py, models/llama3/sharding.py), as a Python
/// function that sets them in a config of its Llama 3. torchtitan has its own modules, whose helpers split attention
/// and MLP as a whole or not at all.

namespace cleave::exchange {
namespace {

constexpr std::string_view kHelpers = R"(
import spmd_types as spmd
from torchtitan.models.common.decoder_sharding import (
    dense_activation_placement,
    dense_param_placement,
    dense_sequence_parallel_placement,
    norm_config,
    set_decoder_sharding_config,
    set_dense_ffn_sharding,
    set_gqa_attention_sharding,
    set_gqa_inner_attention_local_map,
)
from torchtitan.protocols.sharding import ShardingConfig


def whole_config():
    """The config of a replicated module."""
    whole = dense_param_placement(tp=spmd.I)
    return ShardingConfig(state_shardings={"weight": whole, "bias": whole})


def leave_whole(config, names):
    for name in names:
        if hasattr(config, name):
            getattr(config, name).sharding_config = whole_config()

)";

constexpr std::string_view kFunction = R"(

def set_sharding_config(config):
    """Sets `sharding_config` in a model's config and all its parts, as in the plan."""
    set_decoder_sharding_config(config, enable_sp=SEQUENCE_PARALLEL)
    if not SPLIT_EMBEDDING:
        config.tok_embeddings.sharding_config = whole_config()
    if not SPLIT_HEAD:
        config.lm_head.sharding_config = whole_config()
    activation = (
        dense_sequence_parallel_placement() if SEQUENCE_PARALLEL else dense_activation_placement(tp=spmd.I)
    )
    for number, layer in enumerate(config.layers):
        layer.attention_norm.sharding_config = norm_config(enable_sp=SEQUENCE_PARALLEL)
        layer.ffn_norm.sharding_config = norm_config(enable_sp=SEQUENCE_PARALLEL)
        if number in SPLIT_ATTENTION:
            set_gqa_attention_sharding(layer.attention, enable_sp=SEQUENCE_PARALLEL)
            set_gqa_inner_attention_local_map(layer.attention.inner_attention)
        else:
            leave_whole(layer.attention.qkv_linear, ("wq", "wkv", "wqkv"))
            leave_whole(layer.attention, ("wo",))
        if number in SPLIT_FEED_FORWARD:
            set_dense_ffn_sharding(layer.feed_forward, attn_x_layout=activation, enable_sp=SEQUENCE_PARALLEL)
        else:
            leave_whole(layer.feed_forward, ("w1", "w2", "w3"))
)";

class TorchtitanWriter {
 public:
  explicit TorchtitanWriter(const plan::Plan& plan)
      : m_table(layerTable(plan)),
        m_styled(styledLayers(m_table, {.library = "torchtitan",
                                        .hasOwnModules = true,
                                        .supportsGather = false,
                                        .supportsSequence = true,
                                        .keepsLossSplit = true})) {}

  Result<Exported> write() && {
    if (m_table.modelType != "llama") {
      return fail(ErrorCode::BadInput,
                  "torchtitan has its own modules, and their names for model type \"{}\" are not known. This format "
                  "supports llama only.",
                  m_table.modelType);
    }
    for (std::size_t i = 0; i < m_table.layers.size(); ++i) writeLayer(m_table.layers[i], m_styled.forms[i]);
    noteHalf("attention", m_attention);
    noteHalf("feed_forward", m_feedForward);
    std::string text =
        fmt::format("\"\"\"Sharding configs for torchtitan.models.llama3, on {} of axis tp, from a plan of Cleave.\n",
                    counted(m_table.ranks, "rank"));
    m_styled.notes = foldedNotes(m_styled.notes, m_table);
    if (!m_styled.notes.empty()) text += "\nThis file cannot express:\n\n";
    for (const Note& note : m_styled.notes) {
      std::string line = toText(note);
      std::replace(line.begin(), line.end(), '"', '\'');
      std::replace(line.begin(), line.end(), '\\', '/');
      text += fmt::format("- {}\n", line);
    }
    text += fmt::format("\"\"\"{}", kHelpers);
    text += fmt::format(
        "\nSEQUENCE_PARALLEL = {}\nSPLIT_EMBEDDING = {}\nSPLIT_HEAD = {}\nSPLIT_ATTENTION = {}\n"
        "SPLIT_FEED_FORWARD = {}\n",
        truth(m_table.usesSequence), truth(m_splitsEmbedding), truth(m_splitsHead), setText(m_attention),
        setText(m_feedForward));
    return Exported{text + std::string(kFunction), sentences(m_styled.notes)};
  }

 private:
  /// For one kind of block: the layers of the stack with a split part, and those with a replicated part.
  struct Blocks {
    std::set<int> split, whole;
  };

  static std::string_view truth(bool is) { return is ? "True" : "False"; }
  static std::string setText(const Blocks& blocks) {
    std::vector<int> numbers;
    std::set_difference(blocks.split.begin(), blocks.split.end(), blocks.whole.begin(), blocks.whole.end(),
                        std::back_inserter(numbers));
    return numbers.empty() ? "set()" : fmt::format("{{{}}}", fmt::join(numbers, ", "));
  }

  void writeLayer(const Layer& layer, Form form) {
    const auto [pattern, number] = plan::foldIndex(layer.name);
    if (layer.kind == graph::LayerKind::Embedding) {
      m_splitsEmbedding = form == Form::Vocab;
    } else if (number < 0) {
      m_splitsHead = form != Form::Whole || layer.isHead;
    } else {
      Blocks& blocks = pattern.find(".mlp.") != std::string::npos ? m_feedForward : m_attention;
      (form == Form::Whole ? blocks.whole : blocks.split).insert(number);
    }
  }

  void noteHalf(std::string_view block, const Blocks& blocks) {
    std::vector<int> both;
    std::set_intersection(blocks.split.begin(), blocks.split.end(), blocks.whole.begin(), blocks.whole.end(),
                          std::back_inserter(both));
    if (!both.empty())
      addNote(m_styled.notes, {fmt::format("layers.*.{}", block), "partly split",
                               "torchtitan's helpers split all of it or nothing", "it is replicated"});
  }

  LayerTable m_table;
  Styled m_styled;
  Blocks m_attention, m_feedForward;
  bool m_splitsEmbedding = false, m_splitsHead = false;
};

}  // namespace

Result<Exported> writeTorchtitan(const plan::Plan& plan, const Options&) { return TorchtitanWriter(plan).write(); }

}  // namespace cleave::exchange
