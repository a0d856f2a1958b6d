#pragma once
/// The table of the flags that cleave-rank takes from a launcher. The launcher writes arguments with it, and
/// cleave-rank reads them.
///
///     launch.rankArguments = settings::argumentsOf(spec::rankSettings(), spec);
#include "settings/setting.h"
#include "spec/rank/rank_spec.h"

namespace cleave::spec {

const settings::SettingRows<RankSpec>& rankSettings();
/// The arguments of training, or of generation, as cleave-rank reads them; empty if they are not asked for.
std::string trainingText(const program::Training& training);
std::string generationText(const program::Generation& generation);

}  // namespace cleave::spec
